// SPDX-License-Identifier: Apache-2.0
// Goes on where it was stopped: a checkpoint every 20 steps, which a kill at any moment leaves whole. Started
// again with the same folder it ends with the very weights of a training that nobody stopped.
//
//   acc launch --num_processes 2 resume RUN [--data-dir FOLDER] [--epochs N]
#include <ATen/core/grad_mode.h>
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
  acc::Accelerator accelerator(
      {.project_dir = run, .project = {.automatic_checkpoint_naming = true, .total_limit = 2}});
  acc::set_seed(42);
  const Data data = load_data(options.data_dir);
  Net net(data.train.channels(), data.train.side());
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  auto [model, optimizer, train, test] = accelerator.prepare(
      net, std::move(adamw), acc::DataLoader(data.train, {.batch_size = 64, .shuffle = true}),
      acc::DataLoader(data.test, {.batch_size = 100}));

  if (!acc::list_checkpoints(run / "checkpoints").empty()) {
    accelerator.load_state();
    accelerator.print("goes on in epoch " + std::to_string(train.epoch() + 1));
  }
  int steps = 0;
  while (train.epoch() < std::size_t(options.epochs)) {
    model->train();
    for (auto& [images, labels] : train) {
      optimizer.zero_grad();
      const at::Tensor loss = at::nll_loss(model(images), labels);
      accelerator.backward(loss);
      optimizer.step();
      if (++steps % 20 == 0) accelerator.print("saved " + accelerator.save_state().string());
    }

    const at::NoGradGuard no_grad;
    model->eval();
    std::int64_t right = 0;
    std::int64_t total = 0;
    for (auto& [images, labels] : test) {
      const at::Tensor all = accelerator.gather_for_metrics(model(images).argmax(1).eq(labels));
      right += all.sum().item<std::int64_t>();
      total += all.size(0);
    }
    if (accelerator.is_main_process())
      std::printf("epoch %d: %.1f%% of %ld\n", int(train.epoch()), 100.0 * double(right) / double(total),
                  long(total));
  }
  accelerator.save_model(model, run / "model.safetensors");
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
