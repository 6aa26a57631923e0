// SPDX-License-Identifier: Apache-2.0
// C++'s side of scripts/bench/recovery; recovery_peer.py is Python's.
//
//   acc-bench-recovery FOLDER STEPS
//
// Trains, with its state in memory after every tenth step. Each process says `rank R pid P after S` when it
// begins or goes on, the first one `step S at SECONDS` (CLOCK_MONOTONIC) after each step, and at last
// writes model.safetensors to FOLDER.
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>

#include "acc/accelerator.hpp"
#include "acc/checkpoint.hpp"
#include "acc/data.hpp"
#include "acc/error.hpp"
#include "acc/random.hpp"

namespace acc::bench {
namespace {

struct NetImpl : torch::nn::Module {
  NetImpl()
      : layers(register_module("layers",
                               torch::nn::Sequential(torch::nn::Linear(256, 512), torch::nn::ReLU(),
                                                     torch::nn::Dropout(0.1), torch::nn::Linear(512, 512),
                                                     torch::nn::ReLU(), torch::nn::Linear(512, 1)))) {}
  at::Tensor forward(const at::Tensor& x) { return layers->forward(x); }

  torch::nn::Sequential layers;
};
TORCH_MODULE(Net);

struct Steps {
  std::int64_t count = 0;
  PtValue state() const { return count; }
  void load_state(const PtValue& state) { count = static_cast<std::int64_t>(state.number().value()); }
};

// In one piece: the processes share a pipe.
void say(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(99);
}

double now() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void train(const std::filesystem::path& folder, std::int64_t last) {
  constexpr std::int64_t kSamples = 4096;
  Accelerator accelerator({.project_dir = folder, .project = {.automatic_checkpoint_naming = true}});
  set_seed(1);
  const at::Tensor inputs = at::randn({kSamples, 256});
  Net net;
  auto [model, optimizer, loader] = accelerator.prepare(
      net, torch::optim::AdamW(net->parameters(), torch::optim::AdamWOptions(1e-3)),
      DataLoader(TensorDataset<2>(inputs, inputs.sum(1, true)), {.batch_size = 32, .shuffle = true}));
  Steps steps;
  accelerator.register_for_checkpointing(steps);
  accelerator.resume();
  say(fmt::format("rank {} pid {} after {}\n", accelerator.process_index(), ::getpid(), steps.count));
  while (steps.count < last) {
    for (const auto& [x, y] : loader) {
      if (steps.count == last) break;
      optimizer.zero_grad();
      accelerator.backward(at::mse_loss(model(x), y));
      optimizer.step();
      ++steps.count;
      if (accelerator.is_main_process()) say(fmt::format("step {} at {:.6f}\n", steps.count, now()));
      if (steps.count % 10 == 0) accelerator.save_state(in_memory);
    }
  }
  std::filesystem::create_directories(folder);
  accelerator.save_model(model, folder / "model.safetensors");
  accelerator.end_training();
}

}  // namespace
}  // namespace acc::bench

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  acc::bench::train(argv[1], std::stol(argv[2]));
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "acc-bench-recovery: %s\n", error.what());
  return acc::exit_code(error.kind());
}
