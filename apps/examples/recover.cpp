// SPDX-License-Identifier: Apache-2.0
// Goes on where it was after a failure: its state is in memory that outlives its processes, every ten steps.
//
//   acc launch --num_processes 2 --max_restarts 3 --memory-checkpoints 64MB recover RUN [--data-dir FOLDER]
//   [--epochs N]
#include <ATen/ops/nll_loss.h>
#include <torch/optim/adamw.h>

#include <cstdio>

#include "acc/accelerator.hpp"
#include "acc/checkpoint.hpp"
#include "acc/error.hpp"
#include "common/images.hpp"
#include "common/net.hpp"
#include "common/options.hpp"

int main(int argc, char** argv) try {
  std::filesystem::path run;
  const Options options = parse_options(argc, argv, &run);
  acc::Accelerator accelerator({.project_dir = run, .project = {.automatic_checkpoint_naming = true}});
  acc::set_seed(42);
  const Data data = load_data(options.data_dir);
  Net net(data.train.channels(), data.train.side());
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  auto [model, optimizer, train] = accelerator.prepare(
      net, std::move(adamw), acc::DataLoader(data.train, {.batch_size = 64, .shuffle = true}));
  int steps = 0;

  // begin recovery
  accelerator.resume();
  for (const auto epoch : accelerator.epochs(std::uint64_t(options.epochs))) {
    for (auto& [images, labels] : train) {
      optimizer.zero_grad();
      accelerator.backward(at::nll_loss(model(images), labels));
      optimizer.step();
      if (++steps % 10 == 0) accelerator.save_state(acc::in_memory);
    }
    accelerator.print("epoch " + std::to_string(epoch + 1) + " is trained");
  }
  // end recovery
  accelerator.save_model(model, run);
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
