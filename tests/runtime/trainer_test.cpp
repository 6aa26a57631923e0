// SPDX-License-Identifier: Apache-2.0
// Trainers of several processes, each of which runs all cases in this order.
#include "acc/runtime/trainer/trainer.hpp"

#include <ATen/ops/arange.h>
#include <torch/nn/modules/linear.h>

#include <filesystem>
#include <string>

#include "acc/base/error.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "runtime/process.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace trainer_test {

using acc::test::caught_error;
using acc::test::job_state;
using acc::test::rank;
using acc::test::size;
using acc::test::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

acc::TensorDataset<2> numbers(std::int64_t count) {
  const at::Tensor x = at::arange(count, at::kFloat).view({count, 1}) / double(count);
  return acc::TensorDataset<2>(x, x);
}

// Each process has a folder of its own, as on machines that share none.
acc::TrainingArguments arguments_in(const TemporaryFolder& folder) {
  acc::TrainingArguments arguments;
  arguments.output_dir = folder.path() / "run";
  arguments.per_device_train_batch_size = 2;
  arguments.max_steps = 4;
  arguments.save_strategy = acc::SaveStrategy::no;
  arguments.disable_tqdm = true;
  return arguments;
}

acc::Error error_in_training(const acc::TrainingArguments& arguments, const std::string& resume_from = {}) {
  return caught_error(
      [&] { acc::Trainer(torch::nn::Linear(1, 1), arguments, numbers(16)).train(resume_from); });
}

bool says(const acc::Error& error, const std::string& text) {
  INFO(error.what());
  return std::string(error.what()).find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("trainer: processes that find different checkpoints do not resume", "[ranks]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = arguments_in(folder);
  const fs::path saved = job_state().broadcast_object((folder.path() / "saved").string());
  arguments.output_dir = saved;
  arguments.save_strategy = acc::SaveStrategy::steps;
  arguments.save_steps = 2;
  acc::Trainer(torch::nn::Linear(1, 1), arguments, numbers(16)).train();
  arguments.output_dir = folder.path() / "run";
  const auto copy = [&](const std::string& checkpoint) {
    fs::create_directories(arguments.output_dir);
    fs::copy(saved / checkpoint, arguments.output_dir / checkpoint, fs::copy_options::recursive);
  };
  const auto require_refusal = [&](const std::string& choice, const std::string& found) {
    const acc::Error error = error_in_training(arguments, choice);
    CHECK(error.kind() == acc::ErrorKind::config);
    CHECK(says(error, "resume_from_checkpoint: is step 4 on rank 0, and " + found + " on rank 1"));
  };
  const std::string newest = GENERATE("last", "true");
  if (rank() == 0) {
    copy("checkpoint-2");
    copy("checkpoint-4");
  }
  require_refusal(newest, "no checkpoint");
  require_refusal(arguments.output_dir / "checkpoint-4", "no readable checkpoint");
  if (rank() != 0) copy("checkpoint-2");
  require_refusal(newest, "step 2");
  if (rank() != 0) copy("checkpoint-4");
  arguments.save_strategy = acc::SaveStrategy::no;
  acc::Trainer trainer(torch::nn::Linear(1, 1), arguments, numbers(16));
  CHECK(trainer.train(newest).global_step == 4);
  job_state().wait_for_everyone();
}

}  // namespace trainer_test
