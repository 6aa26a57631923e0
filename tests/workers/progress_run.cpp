// SPDX-License-Identifier: Apache-2.0
// progress_run PIPE [trainer]: trains for three steps, evaluates and saves, in a loop or by a Trainer. Then
// the last rank looks for data, in PIPE until a test closes it, and the others wait for it in a gather. Says
// when it has trained.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "acc/accelerator.hpp"
#include "acc/data.hpp"
#include "acc/error.hpp"
#include "acc/optim.hpp"
#include "acc/process.hpp"
#include "acc/trainer.hpp"

namespace {

// At once: the workers of a machine may share a pipe.
void say(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(99);
}

void train(acc::Accelerator& accelerator, const std::filesystem::path& folder) {
  auto net = std::make_shared<torch::nn::LinearImpl>(4, 1);
  auto optimizer = std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1));
  const at::Tensor data = at::ones({3 * 8 * accelerator.num_processes(), 4});
  const acc::TensorDataset samples(data);
  auto [model, stepping, loader] =
      accelerator.prepare(net, optimizer, acc::DataLoader(samples, {.batch_size = 8}));
  for (const auto& batch : loader) {
    const at::Tensor loss = model(batch.at(0)).mean();
    accelerator.backward(loss);
    stepping.step();
    stepping.zero_grad();
  }
  model->eval();
  model(data);
  accelerator.save_state(folder / "state");
}

void train_by_trainer(const acc::Accelerator& accelerator, const std::filesystem::path& folder) {
  const std::int64_t rows = 3 * 8 * accelerator.num_processes();
  const acc::TensorDataset data(at::ones({rows, 4}), at::zeros({rows}, at::kLong));
  acc::TrainingArguments arguments;
  arguments.output_dir = folder / "run";
  arguments.max_steps = 3;
  arguments.save_steps = 3;
  arguments.eval_steps = 3;
  arguments.eval_strategy = acc::IntervalStrategy::steps;
  arguments.disable_tqdm = true;
  acc::Trainer trainer(torch::nn::Linear(4, 2), arguments, data, data);
  trainer.train();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) return 2;
  const std::filesystem::path pipe = argv[1];
  acc::Accelerator accelerator;
  if (argc > 2) {
    train_by_trainer(accelerator, pipe.parent_path());
  } else {
    train(accelerator, pipe.parent_path());
  }
  say("rank " + std::to_string(accelerator.process_index()) + "\n");
  if (accelerator.is_last_process()) {
    const acc::ProgressSection section(acc::Section::data);
    std::string nothing;
    std::getline(std::ifstream(pipe), nothing);
  }
  accelerator.gather(at::ones({1}));
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
