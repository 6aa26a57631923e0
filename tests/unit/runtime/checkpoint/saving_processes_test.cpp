// SPDX-License-Identifier: Apache-2.0
// Several processes are tested by runtime/checkpoints_test.
#include "acc/runtime/checkpoint/saving_processes.hpp"

#include <filesystem>
#include <stdexcept>
#include <vector>

#include "acc/runtime/checkpoint/folder_replacement.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace saving_processes_test {

using acc::SavingProcesses;

TEST_CASE("saving_processes: shared files are written by the first, or by the first of each machine",
          "[runtime]") {
  CHECK(SavingProcesses{.index = 0}.writes_shared(false));
  CHECK_FALSE(SavingProcesses{.index = 2, .local_index = 0}.writes_shared(false));
  CHECK(SavingProcesses{.index = 2, .local_index = 0}.writes_shared(true));
  CHECK_FALSE(SavingProcesses{.index = 3, .local_index = 1}.writes_shared(true));
}

TEST_CASE("saving_processes: the error of a process alone is thrown, after it has cleaned up", "[runtime]") {
  bool is_clean = false;
  CHECK_THROWS_WITH(acc::detail::together(
                        {}, [] { throw std::runtime_error("the disk is full"); }, [&] { is_clean = true; }),
                    "the disk is full");
  CHECK(is_clean);
  CHECK(acc::detail::on_any({})(true));
  CHECK_FALSE(acc::detail::on_any({})(false));
}

TEST_CASE("saving_processes: a process alone is the main one, on the first machine", "[runtime]") {
  CHECK(acc::detail::number_of_main(-7, {}) == -7);
  CHECK(acc::detail::machines_of({}) == std::vector<int>{0});
}

TEST_CASE("saving_processes: a folder is replaced when all is in it, and left alone after a failure",
          "[runtime]") {
  const acc::test::TemporaryFolder parent;
  parent.write("saved/value", "old");
  acc::detail::FolderReplacement folder(parent.path() / "saved", [](const std::string&) { return true; });
  acc::detail::begin_together(folder, {});
  CHECK_THROWS_WITH(
      acc::detail::fill_together(folder, {}, [] { throw std::runtime_error("the disk is full"); }),
      "the disk is full");
  CHECK_FALSE(std::filesystem::exists(folder.temporary()));
  CHECK(parent.read("saved/value") == "old");

  acc::detail::begin_together(folder, {});
  acc::detail::fill_together(folder, {}, [&] {
    parent.write((folder.temporary().lexically_relative(parent.path()) / "value").string(), "new");
  });
  CHECK(parent.read("saved/value") == "old");
  acc::detail::publish_together(folder, {});
  CHECK(parent.read("saved/value") == "new");
}

TEST_CASE("saving_processes: what a killed save left on the disk of a machine is not published",
          "[runtime]") {
  const acc::test::TemporaryFolder disk;
  const SavingProcesses another_machine{.index = 1};
  acc::detail::FolderReplacement folder(disk.path() / "saved", [](const std::string&) { return true; });
  disk.write(".saved.acc-new/left", "by a killed save");
  acc::detail::begin_together(folder, another_machine);
  disk.write(".saved.acc-new/value", "new");
  acc::detail::publish_together(folder, another_machine);
  CHECK(disk.read("saved/value") == "new");
  CHECK_FALSE(std::filesystem::exists(disk.path() / "saved" / "left"));
}

// The client of a shared file system may remember the name after the main process renamed the folder.
TEST_CASE("saving_processes: a machine publishes only what it has created", "[runtime]") {
  const acc::test::TemporaryFolder disk;
  const auto is_any = [](const std::string&) { return true; };
  acc::detail::FolderReplacement of_main(disk.path() / "saved", is_any);
  acc::detail::FolderReplacement of_another(disk.path() / "saved", is_any);
  of_main.begin();
  of_another.begin_if_absent();
  disk.write(".saved.acc-new/value", "new");
  acc::detail::publish_together(of_main, {});
  disk.write(".saved.acc-new/value", "remembered");
  acc::detail::publish_together(of_another, {.index = 1});
  CHECK(disk.read("saved/value") == "new");
}

}  // namespace saving_processes_test
