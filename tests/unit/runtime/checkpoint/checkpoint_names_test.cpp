// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/checkpoint_names.hpp"

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace checkpoint_names_test {

namespace {

namespace fs = std::filesystem;

std::vector<std::int64_t> numbers_in(const fs::path& folder) {
  std::vector<std::int64_t> numbers;
  for (const auto& checkpoint : acc::list_checkpoints(folder)) numbers.push_back(checkpoint.number);
  return numbers;
}

}  // namespace

TEST_CASE("checkpoint names: the first of a kind has no number", "[runtime]") {
  CHECK(acc::detail::numbered_file("optimizer", 0, ".bin") == "optimizer.bin");
  CHECK(acc::detail::numbered_file("model", 2, ".safetensors") == "model_2.safetensors");
  CHECK(acc::detail::random_states_file(3) == "random_states_3.pkl");
  CHECK(acc::detail::custom_file(0) == "custom_checkpoint_0.pkl");
  CHECK(acc::detail::sharded_model_folder(0) == "pytorch_model_fsdp_0");
  CHECK(acc::detail::sharded_optimizer_folder(1) == "optimizer_1");
}

TEST_CASE("checkpoint names: accelerate's files belong to a checkpoint, others do not", "[runtime]") {
  const std::string part = GENERATE(
      "model.safetensors", "model_1.safetensors", "pytorch_model.bin", "model-00001-of-00002.safetensors",
      "model.safetensors.index.json", "optimizer.bin", "optimizer_1.bin", "scheduler.bin", "sampler.bin",
      "dl_state_dict_1.bin", "scaler.pt", "random_states_12.pkl", "custom_checkpoint_0.pkl",
      "pytorch_model_fsdp_0", "optimizer_12", "pytorch_model_fsdp.bin", "pytorch_model_fsdp_1.bin");
  CHECK(acc::detail::is_checkpoint_file(part));
  const std::string other = GENERATE("config.json", "model.txt", "best_model.safetensors",
                                     "random_states.pkl", "optimizer.bin.bak", "tokenizer.json", "");
  CHECK_FALSE(acc::detail::is_checkpoint_file(other));
}

TEST_CASE("checkpoint names: checkpoints are sorted by number, other entries are ignored", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  for (const char* name :
       {"checkpoint_10", "checkpoint_9", "checkpoint_0", "checkpoint_x", "best", ".checkpoint_3.acc-new"})
    fs::create_directories(folder / name);
  acc::replace_file(folder / "checkpoint_11", std::string_view("a file"));
  CHECK(numbers_in(folder) == std::vector<std::int64_t>{0, 9, 10});
  CHECK(acc::list_checkpoints(folder).back().folder == acc::detail::numbered_checkpoint(folder, 10));
  CHECK(acc::list_checkpoints(folder / "none").empty());
}

TEST_CASE("checkpoint names: a Trainer's checkpoints are distinguished from an Accelerator's", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  for (const char* name : {"checkpoint-10", "checkpoint-9", "checkpoint_3", "checkpoint-x", "checkpoint-"})
    fs::create_directories(folder / name);
  const auto checkpoints = acc::list_checkpoints(folder, "checkpoint-");
  REQUIRE(checkpoints.size() == 2);
  CHECK(checkpoints[0].number == 9);
  CHECK(checkpoints[1].folder == folder / "checkpoint-10");
  CHECK(acc::list_checkpoints(folder).size() == 1);
}

TEST_CASE("checkpoint names: the newest are kept", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  for (const int number : {2, 9, 10})
    fs::create_directories(acc::detail::numbered_checkpoint(folder, number));
  fs::create_directories(folder / "best");
  acc::detail::keep_newest(folder, 2, 10);
  CHECK(numbers_in(folder) == std::vector<std::int64_t>{9, 10});
  CHECK(fs::exists(folder / "best"));
  acc::detail::keep_newest(folder, 5, 10);
  CHECK(numbers_in(folder).size() == 2);
}

TEST_CASE("checkpoint names: the one just saved is kept, also beside higher numbers of another training",
          "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  for (const int number : {0, 38, 39})
    fs::create_directories(acc::detail::numbered_checkpoint(folder, number));
  acc::detail::keep_newest(folder, 2, 0);
  CHECK(numbers_in(folder) == std::vector<std::int64_t>{0, 39});
  fs::create_directories(acc::detail::numbered_checkpoint(folder, 1));
  acc::detail::keep_newest(folder, 2, 1);
  CHECK(numbers_in(folder) == std::vector<std::int64_t>{1, 39});
  acc::detail::keep_newest(folder, 1, 1);
  CHECK(numbers_in(folder) == std::vector<std::int64_t>{1});
}

TEST_CASE("checkpoint names: leftovers of killed processes are removed, complete checkpoints are kept",
          "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  for (const char* name :
       {".checkpoint_1.acc-new", ".checkpoint_0.acc-gone", ".checkpoint_0.acc-copy", ".checkpoint-5.acc-new",
        ".checkpoint-5.acc-gone", "checkpoint_2", ".other.acc-new"})
    acc::replace_file(folder / name / "f", std::string_view("x"));
  acc::detail::remove_leftovers(folder);
  CHECK(fs::exists(folder / "checkpoint_2"));
  CHECK(fs::exists(folder / ".other.acc-new"));
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 2);
}

TEST_CASE("checkpoint names: the next number is after the highest, and none is written twice", "[runtime]") {
  const fs::path folder = acc::test::temporary_folder();
  CHECK(acc::detail::next_number(folder / "none") == 0);
  CHECK(acc::test::error_of([&] { acc::newest_checkpoint(folder); }) ==
        folder.string() + ": holds no checkpoint");
  for (const int number : {2, 10}) fs::create_directories(acc::detail::numbered_checkpoint(folder, number));
  CHECK(acc::detail::next_number(folder) == 11);
  CHECK(acc::newest_checkpoint(folder) == folder / "checkpoint_10");
  CHECK(acc::detail::folder_to_save(folder, 11) == folder / "checkpoint_11");
  CHECK(acc::test::error_of([&] { acc::detail::folder_to_save(folder, 2); }) ==
        (folder / "checkpoint_2").string() +
            ": already exists (load_state() continues after it; a new training needs another project_dir)");
}

}  // namespace checkpoint_names_test
