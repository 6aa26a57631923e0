// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_checkpoints.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace trainer_checkpoints_test {

using acc::detail::TrainerCheckpoints;
using acc::test::error_of;
using acc::test::TemporaryFolder;

namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// A folder with checkpoints of these steps, each written after those before it.
void write_checkpoints(const TemporaryFolder& folder, const std::vector<int>& steps) {
  fs::file_time_type written = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const int step : steps) {
    const fs::path file = folder.write("checkpoint-" + std::to_string(step) + "/trainer_state.json", "{}");
    fs::last_write_time(file, written += std::chrono::seconds(1));
  }
}

Names names_in(const TemporaryFolder& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE("trainer_checkpoints: the newest is resumed if one is asked for", "[runtime]") {
  const TemporaryFolder folder;
  const TrainerCheckpoints checkpoints(folder.path());
  CHECK(checkpoints.folder_to_resume("").empty());
  CHECK(checkpoints.folder_to_resume("false").empty());
  CHECK(checkpoints.folder_to_resume("last").empty());
  CHECK(checkpoints.folder_to_resume("elsewhere") == "elsewhere");
  CHECK(checkpoints.folder_to_resume("else/where/") == "else/where");  // its parent folder has the best one
  CHECK(error_of([&] { checkpoints.folder_to_resume("true"); }) ==
        "resume_from_checkpoint: no checkpoint in " + folder.path().string());
  write_checkpoints(folder, {10, 9});
  folder.write("checkpoint-11/model.safetensors", "of a program's own");
  CHECK(checkpoints.folder_to_resume("last") == checkpoints.folder_of(10));
  CHECK(checkpoints.folder_to_resume("true") == folder.path() / "checkpoint-10");
}

TEST_CASE("trainer_checkpoints: rotation removes the oldest, but neither the best nor the newest",
          "[runtime]") {
  const TemporaryFolder folder;
  write_checkpoints(folder, {1, 2, 3, 4});
  const TrainerCheckpoints checkpoints(folder.path());
  checkpoints.rotation(2, checkpoints.folder_of(2))();
  CHECK(names_in(folder) == Names{"checkpoint-2", "checkpoint-4"});
  checkpoints.rotation(1, checkpoints.folder_of(2))();
  CHECK(names_in(folder) == Names{"checkpoint-2", "checkpoint-4"});
  checkpoints.rotation(1, {})();
  CHECK(names_in(folder) == Names{"checkpoint-4"});
}

TEST_CASE("trainer_checkpoints: a training's own are newer than those it found", "[runtime]") {
  const TemporaryFolder folder;
  write_checkpoints(folder, {3, 8, 9});
  TrainerCheckpoints checkpoints(folder.path());
  checkpoints.add_own(3);
  checkpoints.rotation(1, {})();
  CHECK(names_in(folder) == Names{"checkpoint-3"});
  checkpoints.forget_own();
  CHECK_FALSE(checkpoints.is_own(3));
}

TEST_CASE("trainer_checkpoints: all but one are removed only beside it", "[runtime]") {
  const TemporaryFolder folder;
  const TemporaryFolder elsewhere;
  write_checkpoints(folder, {1, 2});
  write_checkpoints(elsewhere, {1});
  const TrainerCheckpoints checkpoints(folder.path());
  checkpoints.remove_all_but(elsewhere.path() / "checkpoint-1");
  CHECK(names_in(folder) == Names{"checkpoint-1", "checkpoint-2"});
  checkpoints.remove_all_but(folder.path() / "checkpoint-1");
  CHECK(names_in(folder) == Names{"checkpoint-1"});
}

TEST_CASE("trainer_checkpoints: a folder that cannot be written is told before it is needed", "[runtime]") {
  const TemporaryFolder folder;
  const auto error_for = [](const fs::path& output_dir) {
    return error_of([&] { TrainerCheckpoints(output_dir).require_writable(); });
  };
  CHECK(error_for(folder.path()) == "no error");
  CHECK(error_for(folder.path() / "new" / "newer") == "no error");
  CHECK_FALSE(fs::exists(folder.path() / "new"));
  const fs::path file = folder.write("file", "");
  for (const fs::path& output_dir : {file, file / "new", file / "new" / "newer"})
    CHECK(error_for(output_dir) == "output_dir: " + file.string() +
                                       " cannot be written: Not a directory (name another folder, or set "
                                       "save_strategy to no)");
}

}  // namespace trainer_checkpoints_test
