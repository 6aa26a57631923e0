// SPDX-License-Identifier: Apache-2.0
// recovering_run FOLDER: trains three epochs as FSDP_* say, with its state in memory after every third step
// and on the disk after every 40th, goes on where it was after a restart, and writes model.safetensors to
// FOLDER. Says `rank R pid P goes on after step S`, `step 12`, at last `trained S steps, the last N`.
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

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

// At once: the workers of a machine may share a pipe.
void say(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(99);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
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
  say("rank " + std::to_string(accelerator.process_index()) + " pid " + std::to_string(::getpid()) +
      " goes on after step " + std::to_string(before) + "\n");
  for ([[maybe_unused]] const std::uint64_t epoch : accelerator.epochs(kEpochs)) {
    for (const auto& batch : loader) {
      const at::Tensor loss = at::binary_cross_entropy_with_logits(model(batch.at(0)), batch.at(1));
      accelerator.backward(loss);
      accelerator.clip_grad_norm_(model->parameters(), 1.0);
      optimizer.step();
      scheduler.step();
      optimizer.zero_grad();
      ++count.steps;
      if (count.steps == 12 && accelerator.is_main_process()) say("step 12\n");
      if (count.steps % 3 == 0) accelerator.save_state(acc::in_memory);
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
