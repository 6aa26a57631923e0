// SPDX-License-Identifier: Apache-2.0
#include "acc/base/files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"
#include "support/working_folder.hpp"

namespace files_test {

namespace fs = std::filesystem;
using acc::test::error_of;
using acc::test::TemporaryFolder;
using acc::test::WorkingFolder;

TEST_CASE("files: a file is replaced atomically, its parents created", "[base]") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "a" / "b" / "config.yaml";
  acc::replace_file(file, "one\n");
  CHECK(acc::read_file(file) == "one\n");
  acc::replace_file(file, "two\n");
  CHECK(acc::read_file(file) == "two\n");
  CHECK(std::distance(fs::directory_iterator(file.parent_path()), {}) == 1);
}

TEST_CASE("files: the first line of a file, empty if it cannot be read", "[base]") {
  const TemporaryFolder folder;
  CHECK(acc::first_line_of(folder.write("two", "0-3,8\nmore\n")) == "0-3,8");
  CHECK(acc::first_line_of(folder.write("open", "7")) == "7");
  CHECK(acc::first_line_of(folder.path() / "none").empty());
}

TEST_CASE("files: a large text is written completely, in any parts", "[base]") {
  const TemporaryFolder folder;
  std::string text(11'000'001, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i >> 7U);
  const std::string_view all = text;
  const std::vector<std::string_view> parts = {
      all.substr(0, 3), {}, all.substr(3, 4U << 20U), all.substr((4U << 20U) + 3)};
  acc::replace_file(folder.path() / "large", parts);
  CHECK(acc::read_file(folder.path() / "large") == text);
}

TEST_CASE("files: a replaced file keeps its mode and its link", "[base]") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("real", "old");
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  fs::create_symlink(file, folder.path() / "link");
  acc::replace_file(folder.path() / "link", "new");
  CHECK(fs::is_symlink(folder.path() / "link"));
  CHECK(folder.read("real") == "new");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("files: a replaced file keeps its mode and owner, whatever the umask", "[base]") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("shared", "old");
  REQUIRE(::chmod(file.c_str(), 0664) == 0);
  const bool root = ::geteuid() == 0;
  if (root) REQUIRE(::chown(file.c_str(), 12345, 23456) == 0);
  const mode_t before = ::umask(0077);
  acc::replace_file(file, "new");
  ::umask(before);
  struct stat replaced = {};
  REQUIRE(::stat(file.c_str(), &replaced) == 0);
  CHECK((replaced.st_mode & 07777U) == 0664U);
  if (root) CHECK(replaced.st_uid == 12345);
  if (root) CHECK(replaced.st_gid == 23456);
}

TEST_CASE("files: the file of a killed writer with this process's id is not in the way", "[base]") {
  const TemporaryFolder folder;
  folder.write("c.yaml.acc-" + std::to_string(::getpid()), "left");
  acc::replace_file(folder.path() / "c.yaml", "new");
  CHECK(folder.read("c.yaml") == "new");
}

TEST_CASE("files: changes under the lock of the folder are made one after the other", "[base]") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("count", "0");
  constexpr int kWriters = 4;
  constexpr int kChanges = 25;
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < kWriters; ++i) {
      writers.emplace_back([&] {
        for (int change = 0; change < kChanges; ++change) {
          const acc::Descriptor lock = acc::lock_folder_of(file);
          acc::replace_file(file, std::to_string(std::stoi(acc::read_file(file)) + 1));
        }
      });
    }
  }
  CHECK(folder.read("count") == std::to_string(kWriters * kChanges));
}

TEST_CASE("files: resolves any path, also of a missing file", "[base]") {
  const TemporaryFolder folder;
  const fs::path working_folder = fs::canonical(folder.path());
  const WorkingFolder inside(working_folder);
  fs::create_directory("real");
  fs::create_symlink("real", "link");
  fs::create_symlink("to_come", "dangling");
  fs::create_symlink("circle", "circle");
  CHECK(acc::resolved_path("x") == working_folder / "x");
  CHECK(acc::resolved_path("./x/") == working_folder / "x");
  CHECK(acc::resolved_path("a/../b c") == working_folder / "b c");
  CHECK(acc::resolved_path("/x") == "/x");
  CHECK(acc::resolved_path("link/x") == working_folder / "real" / "x");
  CHECK(acc::resolved_path("dangling") == working_folder / "to_come");
  CHECK(error_of([] { acc::resolved_path("circle"); }) ==
        (working_folder / "circle").string() + ": cannot be written: Too many levels of symbolic links");
  acc::replace_file("dangling", "text");
  CHECK(fs::is_symlink("dangling"));
  CHECK(folder.read("to_come") == "text");
}

TEST_CASE("files: a failed write is an error that names the file, and leaves no temporary file", "[base]") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "taken" / "inside");
  const std::string error = error_of([&] { acc::replace_file(folder.path() / "taken", "text"); });
  CHECK(error == (folder.path() / "taken").string() + ": cannot be replaced: Is a directory");
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("files: what could not be replaced is known before, and nothing is left", "[base]") {
  const TemporaryFolder folder;
  const auto file = folder.write("old", "text");
  acc::require_replaceable(file);
  acc::require_replaceable(folder.path() / "new");
  CHECK(acc::read_file(file) == "text");
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
  fs::create_directory(folder.path() / "taken");
  CHECK(error_of([&] { acc::require_replaceable(folder.path() / "taken"); }) ==
        (folder.path() / "taken").string() + ": cannot be replaced: Is a directory");
  CHECK(error_of([&] { acc::require_replaceable(file / "inside"); }) ==
        file.string() + ": cannot be created: Not a directory");
}

TEST_CASE("files: a folder is synced where the file system can, and what is none is named", "[base]") {
  const TemporaryFolder folder;
  acc::sync_folder(folder.path());
  acc::sync_folder("/proc/self");  // fsync: EINVAL
  CHECK(error_of([&] { acc::sync_folder(folder.path() / "missing"); }) ==
        (folder.path() / "missing").string() + ": cannot be written: No such file or directory");
}

TEST_CASE("files: a failed read says why", "[base]") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { acc::read_file(folder.path() / "missing"); }) ==
        (folder.path() / "missing").string() + ": cannot be read: No such file or directory");
  CHECK(error_of([&] { acc::read_file(folder.path()); }) ==
        folder.path().string() + ": cannot be read: Is a directory");
  const fs::path large = folder.write("large", std::string(11, 'x'));
  CHECK(error_of([&] { acc::read_file(large, 10); }) == large.string() + ": is larger than 10 bytes");
}

TEST_CASE("files: a pipe is read to its end; one without a writer is refused at once", "[base]") {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(error_of([&] { acc::read_file(pipe); }) == pipe.string() + ": is a pipe without a writer");

  std::array<int, 2> ends = {};
  REQUIRE(::pipe(ends.data()) == 0);
  const std::string name = "/dev/fd/" + std::to_string(ends[0]);
  ssize_t written = 0;
  std::thread writer([&] {
    written = ::write(ends[1], "one\n", 4);
    ::close(ends[1]);
  });
  const std::string text = acc::read_file(name);
  writer.join();
  CHECK(written == 4);
  CHECK(text == "one\n");
  ::close(ends[0]);
}

TEST_CASE("files: the program's folder is that of this test", "[base]") {
  CHECK(fs::exists(acc::program_folder() / "acc-test-base"));
}

TEST_CASE("files: writing to a dangling link creates its target", "[base]") {
  const TemporaryFolder folder;
  fs::create_symlink("other", folder.path() / "link");
  fs::create_symlink("link", folder.path() / "twice");
  acc::replace_file(folder.path() / "twice", "new");
  CHECK(fs::is_symlink(folder.path() / "twice"));
  CHECK(fs::is_symlink(folder.path() / "link"));
  CHECK(folder.read("other") == "new");
  fs::create_symlink("circle", folder.path() / "circle");
  CHECK(error_of([&] { acc::replace_file(folder.path() / "circle", "new"); }) ==
        (folder.path() / "circle").string() + ": cannot be written: Too many levels of symbolic links");
}

TEST_CASE("files: a pipe or a device is never replaced", "[base]") {
  const acc::test::TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(acc::test::error_of([&] { acc::replace_file(pipe, "text"); }) ==
        pipe.string() + ": is not a regular file");
  CHECK(std::filesystem::is_fifo(pipe));
}

}  // namespace files_test
