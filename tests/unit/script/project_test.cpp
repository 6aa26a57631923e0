// SPDX-License-Identifier: Apache-2.0
#include "acc/script/project.hpp"

#include <sys/stat.h>

#include "acc/base/file_id.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"
#include "support/working_folder.hpp"

namespace project_test {

namespace fs = std::filesystem;

using acc::launcher::fill_in;
using acc::launcher::project_name;
using acc::launcher::ProjectFile;
using acc::launcher::write_project;
using acc::test::error_of;
using acc::test::TemporaryFolder;
using acc::test::WorkingFolder;

namespace {

const std::vector<ProjectFile> kFiles = {{"CMakeLists.txt", "project(x)\n"},
                                         {"tests/a.cpp", "int main() {}\n"}};

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("project: keys between @ become values, everything else stays", "[script]") {
  const std::map<std::string, std::string> values = {{"name", "digits"}};
  CHECK(fill_in("project(@name@)", values) == "project(digits)");
  CHECK(fill_in("@name@@name@ @other@ me@host @ @name", values) == "digitsdigits @other@ me@host @ @name");
  CHECK(fill_in("@other@name@", values) == "@otherdigits");
  CHECK(fill_in("", values).empty());
}

TEST_CASE("project: its name is the last part of the folder", "[script]") {
  const TemporaryFolder folder;
  const WorkingFolder there(folder.path());
  CHECK(project_name("digits") == "digits");
  CHECK(project_name("a/b/My-Net_2/") == "My-Net_2");
  CHECK(project_name("a/../digits/.") == "digits");
  fs::create_directories("target/inside");
  fs::create_directory_symlink("target", "link");
  CHECK(project_name("link") == "link");
  CHECK(project_name("link/") == "link");
  CHECK(project_name("target/inside/..") == "target");
}

TEST_CASE("project: what cannot name a program is refused", "[script]") {
  for (const std::string bad :
       {"2net", "my net", "caf\xc3\xa9", "-net", ".net", "a.b", "a;b", "a$b", "a@b", "/"}) {
    INFO(bad);
    CHECK(error_of([&] { project_name(bad); }).find("cannot be the name of a program") != std::string::npos);
  }
  CHECK(error_of([] { project_name(std::string(65, 'a')); }) ==
        std::string(65, 'a') + ": '" + std::string(65, 'a') +
            "' cannot be the name of a program (at most 64 letters, digits, _ and -, a letter first)");
  for (const std::string taken : {"test", "All", "model_test", "torch", "C10", "fmt", "acc", "acc_runtime"}) {
    INFO(taken);
    CHECK(error_of([&] { project_name("work/" + taken); }) ==
          "work/" + taken + ": '" + taken +
              "' is a name that CMake, LibTorch or acc uses itself (choose another one)");
  }
}

TEST_CASE("project: a new folder, or an empty one, has the files and nothing else", "[script]") {
  const TemporaryFolder folder;
  const fs::path made = folder.path() / "work here/digits";
  write_project(made, kFiles);
  CHECK(entries(made) == 2);
  CHECK(folder.read("work here/digits/tests/a.cpp") == "int main() {}\n");
  CHECK(entries(made.parent_path()) == 1);

  fs::create_directory(folder.path() / "empty");
  fs::create_directory_symlink("empty", folder.path() / "link");
  write_project(folder.path() / "link/", kFiles);
  CHECK(folder.read("empty/CMakeLists.txt") == "project(x)\n");
}

TEST_CASE("project: an empty folder stays the same one, with its mode", "[script]") {
  const TemporaryFolder folder;
  const fs::path made = folder.path() / "private";
  fs::create_directory(made);
  REQUIRE(::chmod(made.c_str(), 02700) == 0);
  const auto before = acc::file_id(made);
  write_project(made, kFiles);
  CHECK(acc::file_id(made) == before);
  struct stat status = {};
  REQUIRE(::stat(made.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777U) == 02700U);
  CHECK(entries(made) == 2);
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("project: a folder that cannot be filled stays empty", "[script]") {
  const TemporaryFolder folder;
  const fs::path made = folder.path() / "digits";
  fs::create_directory(made);
  const std::vector<ProjectFile> too_long = {kFiles[0], {std::string(300, 'x'), ""}};
  CHECK_FALSE(error_of([&] { write_project(made, too_long); }).empty());
  CHECK(fs::is_empty(made));
}

TEST_CASE("project: what is there already is left as it is", "[script]") {
  const TemporaryFolder folder;
  folder.write("full/mine", "");
  folder.write("file", "");
  const WorkingFolder there(folder.path());
  CHECK(error_of([] { write_project("full", kFiles); }) ==
        "full: is there already, and is not empty (name a new folder)");
  CHECK(error_of([] { write_project("file", kFiles); }) ==
        "file: is there already, and is not a folder (name a new folder)");
  CHECK(entries(folder.path()) == 2);
  CHECK(entries("full") == 1);
  fs::create_directory("empty");
  const WorkingFolder inside("empty");
  CHECK(error_of([] { write_project(".", kFiles); }) == ".: is the current folder (name a new folder)");
}

TEST_CASE("project: nothing is left of one that cannot be written", "[script]") {
  const TemporaryFolder folder;
  folder.write("file", "");
  const WorkingFolder there(folder.path());
  CHECK(error_of([] { write_project("file/digits", kFiles); }) ==
        fs::absolute("file/digits").string() + ": cannot be created: Not a directory");
  CHECK(error_of([] { write_project("/proc/digits", kFiles); }) ==
        "/proc/digits: cannot be created: No such file or directory");
  const std::vector<ProjectFile> too_long = {kFiles[0], {std::string(300, 'x'), ""}};
  CHECK(error_of([&] { write_project("a/b/digits", too_long); }).find("File name too long") !=
        std::string::npos);
  CHECK(entries(folder.path()) == 1);
}

}  // namespace project_test
