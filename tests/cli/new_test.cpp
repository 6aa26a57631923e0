// SPDX-License-Identifier: Apache-2.0
// acc new from a shell. That what it writes builds and trains is in tests/package.
#include <algorithm>

#include "support/catch.hpp"
#include "support/run.hpp"
#include "support/temporary_folder.hpp"

namespace new_test {

namespace fs = std::filesystem;

using acc::test::Run;
using acc::test::TemporaryFolder;

namespace {

Run acc_new(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"acc", "new"});
  return acc::test::run(arguments, acc::test::clean_environment(folder.path().string()), "",
                        folder.path().string());
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path().lexically_relative(folder).string());
  std::ranges::sort(files);
  return files;
}

}  // namespace

TEST_CASE("new: without a kind it lists them", "[cli]") {
  const TemporaryFolder folder;
  const Run run = acc_new(folder, {});
  CHECK(run.code == 0);
  CHECK(run.out.starts_with("training  A training in C++"));
  CHECK(contains(acc_new(folder, {"--help"}).out, "--trainer"));
}

TEST_CASE("new training: a project with its name in it, and what to do next", "[cli]") {
  const TemporaryFolder folder;
  const Run run = acc_new(folder, {"training", "my work/digits"});
  CHECK(run.code == 0);
  CHECK(contains(run.out, "my work/digits/CMakeLists.txt\n"));
  CHECK(contains(
      run.out,
      "  cd 'my work/digits'\n  cmake -B build && cmake --build build\n  acc launch build/digits\n"));
  CHECK(files_below(folder.path()) ==
        std::vector<std::string>{"my work/digits/.clang-format", "my work/digits/.gitignore",
                                 "my work/digits/CMakeLists.txt", "my work/digits/README.md",
                                 "my work/digits/main.cpp", "my work/digits/model.hpp",
                                 "my work/digits/model_test.cpp"});
  CHECK(contains(folder.read("my work/digits/CMakeLists.txt"), "project(digits LANGUAGES CXX)"));
  CHECK(folder.read("my work/digits/main.cpp").starts_with("// Trains on one process or many"));
  for (const std::string& file : files_below(folder.path())) {
    INFO(file);
    const std::string text = folder.read(file);
    CHECK_FALSE(contains(text, "@"));
    CHECK_FALSE(contains(text, "SPDX"));
    CHECK(text.ends_with("\n"));
  }
}

TEST_CASE("new training --trainer: the same project with a Trainer", "[cli]") {
  const TemporaryFolder folder;
  CHECK(acc_new(folder, {"training", "--trainer", "digits"}).code == 0);
  CHECK(contains(folder.read("digits/main.cpp"), "acc::Trainer trainer("));
  CHECK_FALSE(fs::exists(folder.path() / "digits/trainer.cpp"));
}

TEST_CASE("new training: a link to an empty folder names the program", "[cli]") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "target");
  fs::create_directory_symlink("target", folder.path() / "digits");
  const Run run = acc_new(folder, {"training", "digits"});
  CHECK(run.code == 0);
  CHECK(contains(run.out, "acc launch build/digits\n"));
  CHECK(contains(folder.read("target/CMakeLists.txt"), "project(digits LANGUAGES CXX)"));
}

TEST_CASE("new: what it cannot do is one line, and leaves nothing", "[cli]") {
  const TemporaryFolder folder;
  folder.write("full/mine", "");
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& said) {
    const Run run = acc_new(folder, arguments);
    INFO(run.err);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    CHECK(contains(run.err, said));
    CHECK(std::ranges::count(run.err, '\n') == 1);
  };
  refused({"trainin", "digits"}, "trainin: no such kind of project (did you mean 'training'?)");
  refused({"training"}, "acc new training: needs the folder to make (as in acc new training my_project)");
  refused({"training", "full"}, "full: is there already, and is not empty");
  refused({"training", "2digits"}, "cannot be the name of a program");
  refused({"training", "digits", "--trainers"}, "--trainers");
  const Run unwritable = acc_new(folder, {"training", "full/mine/digits"});
  CHECK(unwritable.code == 1);
  CHECK(contains(unwritable.err, "full/mine/digits: cannot be created: Not a directory"));
  CHECK(files_below(folder.path()) == std::vector<std::string>{"full/mine"});
}

}  // namespace new_test
