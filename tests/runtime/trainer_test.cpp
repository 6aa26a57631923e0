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

TEST_CASE("trainer: arguments that differ between processes are refused by name", "[ranks]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = arguments_in(folder);
  const bool is_first = rank() == 0;
  const auto require_refusal = [&](const std::string& name, const std::string& first,
                                   const std::string& other) {
    const std::string on_other = " on rank " + std::to_string(name == "optim" ? size() - 1 : 1);
    CHECK(says(error_in_training(arguments), name + ": is " + first + " on rank 0, and " + other + on_other));
  };
  SECTION("learning_rate") {
    arguments.learning_rate = is_first ? 0.05 : 0.01;
    arguments.max_grad_norm = is_first ? 1 : 2;
    require_refusal("learning_rate", "0.05", "0.01");
  }
  SECTION("max_grad_norm") {
    arguments.max_grad_norm = is_first ? 1 : 0.5;
    require_refusal("max_grad_norm", "1.0", "0.5");
  }
  SECTION("gradient_accumulation_steps") {
    arguments.gradient_accumulation_steps = is_first ? 1 : 2;
    require_refusal("gradient_accumulation_steps", "1", "2");
  }
  SECTION("on the last process alone") {
    if (rank() == size() - 1) arguments.optim = acc::OptimizerName::sgd;
    require_refusal("optim", "adamw_torch", "sgd");
  }
  SECTION("resume_from_checkpoint") {
    arguments.resume_from_checkpoint = is_first ? "last" : "false";
    require_refusal("resume_from_checkpoint", "last", "false");
  }
  SECTION("what a machine or a process may have of its own") {
    arguments.output_dir /= std::to_string(rank());
    arguments.run_name = std::to_string(rank());
    arguments.seed = 42 + static_cast<std::uint64_t>(rank());
    arguments.disable_tqdm = is_first;
    arguments.dataloader_num_workers = is_first ? 0 : 1;
    CHECK(std::string(error_in_training(arguments).what()) == "none");
  }
}

TEST_CASE("trainer: an evaluation of which processes have different numbers of batches is refused",
          "[ranks]") {
  const TemporaryFolder folder;
  acc::TrainingArguments arguments = arguments_in(folder);
  arguments.accelerator_config.even_batches = false;
  arguments.per_device_eval_batch_size = 1;
  const auto evaluate = [&](std::int64_t samples) {
    acc::Trainer trainer(torch::nn::Linear(1, 1), arguments, numbers(16), numbers(samples));
    return caught_error([&] { trainer.evaluate(); });
  };
  const acc::Error error = evaluate(2 * size() + 1);
  CHECK(error.kind() == acc::ErrorKind::config);
  CHECK(says(error, "evaluation: has 3 batches on rank 0, and 2 on rank 1"));
  CHECK(says(evaluate(2 * size()), "none"));
}

}  // namespace trainer_test
