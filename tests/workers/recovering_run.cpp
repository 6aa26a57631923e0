// SPDX-License-Identifier: Apache-2.0
// recovering_run FOLDER: trains three epochs as FSDP_* say, with its state in memory after every third step
// and on the disk after every 40th, goes on where it was after a restart, and writes model.safetensors to
// FOLDER. Says `rank R goes on after step S`, `step 12`, at last `trained S steps, the last N`.
// ACC_TEST_KILLS is `RANK:STEPS:MICROSECONDS,...`, one for each attempt: this rank is killed when it has
// trained so many steps in this attempt, and so much later; with 0 steps, when the program starts. With
// ACC_TEST_DISK nothing is saved in memory.
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>

#include "acc/accelerator.hpp"
#include "acc/checkpoint.hpp"
#include "acc/data.hpp"
#include "acc/error.hpp"
#include "acc/optim.hpp"
#include "acc/random.hpp"

namespace {

constexpr std::uint64_t kEpochs = 3;

struct NetImpl : torch::nn::Module {
  NetImpl()
      : in(register_module("in", torch::nn::Linear(32, 64))),
        norm(register_module("norm", torch::nn::BatchNorm1d(64))),
        dropout(register_module("dropout", torch::nn::Dropout(0.2))),
        out(register_module("out", torch::nn::Linear(64, 1))) {}
  at::Tensor forward(const at::Tensor& x) { return out(dropout(norm(in(x)).relu())); }

  torch::nn::Linear in;
  torch::nn::BatchNorm1d norm;
  torch::nn::Dropout dropout;
  torch::nn::Linear out;
};
TORCH_MODULE(Net);

// Of the program's own: what it has seen.
struct Count {
  std::int64_t steps = 0;
  acc::PtValue state() const { return steps; }
  void load_state(const acc::PtValue& state) { steps = static_cast<std::int64_t>(*state.number()); }
};

/// Kills this process at the moment that ACC_TEST_KILLS names for this rank and attempt, whatever it does
/// then.
class Kill {
 public:
  Kill() {
    const char* kills = std::getenv("ACC_TEST_KILLS");
    const char* rank = std::getenv("RANK");
    const char* attempt = std::getenv("TORCHELASTIC_RESTART_COUNT");
    if (kills == nullptr || rank == nullptr || attempt == nullptr) return;
    std::istringstream all(kills);
    std::string kill;
    for (int i = 0; i <= std::atoi(attempt); ++i)
      if (!std::getline(all, kill, ',')) return;
    long process = -1;
    long microseconds = 0;
    if (std::sscanf(kill.c_str(), "%ld:%ld:%ld", &process, &steps_, &microseconds) != 3) std::_Exit(99);
    if (process != std::atol(rank)) steps_ = -1;
    delay_ = std::chrono::microseconds(microseconds);
  }

  void note_steps(std::int64_t steps) const {
    if (steps != steps_) return;
    std::thread([delay = delay_] {
      std::this_thread::sleep_for(delay);
      std::raise(SIGKILL);
    }).detach();
  }

 private:
  long steps_ = -1;
  std::chrono::microseconds delay_ = {};
};

// At once: the workers of a machine may share a pipe.
void say(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(99);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  const bool on_disk_alone = std::getenv("ACC_TEST_DISK") != nullptr;
  const Kill kill;
  kill.note_steps(0);
  acc::Accelerator accelerator(
      {.project_dir = folder, .project = {.automatic_checkpoint_naming = true, .total_limit = 2}});
  acc::set_seed(7);
  const at::Tensor inputs = at::randn({64 * 16, 32});
  const acc::TensorDataset data(inputs, inputs.sum(1, true).gt(0).to(at::kFloat));
  Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  acc::Scheduler decay(adamw, acc::cosine_with_warmup(20, 3 * 64));
  auto [model, optimizer, loader, scheduler] = accelerator.prepare(
      net, std::move(adamw), acc::DataLoader(data, {.batch_size = 16, .shuffle = true}), std::move(decay));
  Count count;
  accelerator.register_for_checkpointing(count);

  accelerator.resume();
  const std::int64_t before = count.steps;
  say("rank " + std::to_string(accelerator.process_index()) + " goes on after step " +
      std::to_string(before) + "\n");
  for ([[maybe_unused]] const std::uint64_t epoch : accelerator.epochs(kEpochs)) {
    for (const auto& batch : loader) {
      const at::Tensor loss = at::binary_cross_entropy_with_logits(model(batch.at(0)), batch.at(1));
      accelerator.backward(loss);
      accelerator.clip_grad_norm_(model->parameters(), 1.0);
      optimizer.step();
      scheduler.step();
      optimizer.zero_grad();
      kill.note_steps(++count.steps - before);
      if (count.steps == 12 && accelerator.is_main_process()) say("step 12\n");
      if (count.steps % 3 == 0 && !on_disk_alone) accelerator.save_state(acc::in_memory);
      if (count.steps % 40 == 0) accelerator.save_state();
    }
  }
  accelerator.save_model(model, folder / "model.safetensors");
  accelerator.end_training();
  if (accelerator.is_main_process())
    say("trained " + std::to_string(count.steps) + " steps, the last " +
        std::to_string(count.steps - before) + "\n");
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
