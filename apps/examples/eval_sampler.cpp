// SPDX-License-Identifier: Apache-2.0
// As accelerated.cpp, and each test image goes to exactly one process: exact counts, with one exchange for a
// whole pass.
//
//   acc launch --num_processes 3 eval_sampler [--data-dir FOLDER] [--epochs N]
#include <ATen/core/grad_mode.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adamw.h>

#include <cstdio>

#include "acc/accelerator.hpp"
#include "acc/data.hpp"
#include "acc/error.hpp"
#include "common/images.hpp"
#include "common/net.hpp"
#include "common/options.hpp"

int main(int argc, char** argv) try {
  const Options options = parse_options(argc, argv);
  acc::Accelerator accelerator;
  acc::set_seed(42);
  const Data data = load_data(options.data_dir);
  Net net(data.train.channels(), data.train.side());
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  const auto every_image_once = std::make_shared<acc::DistributedEvalSampler>(*data.test.size());
  auto [model, optimizer, train, test] = accelerator.prepare(
      net, std::move(adamw), acc::DataLoader(data.train, {.batch_size = 64, .shuffle = true}),
      acc::DataLoader(data.test, {.batch_size = 100, .sampler = every_image_once}));

  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    model->train();
    for (auto& [images, labels] : train) {
      optimizer.zero_grad();
      const at::Tensor loss = at::nll_loss(model(images), labels);
      accelerator.backward(loss);
      optimizer.step();
    }

    const at::NoGradGuard no_grad;
    model->eval();
    at::Tensor counts = at::zeros({2}, at::TensorOptions(at::kLong).device(accelerator.device()));
    for (auto& [images, labels] : test) {
      // Not `model`, which may talk to the others: they may have fewer batches.
      counts[0] += net(images).argmax(1).eq(labels).sum();
      counts[1] += labels.size(0);
    }
    counts = accelerator.reduce(counts);
    const auto right = counts[0].item<std::int64_t>();
    const auto seen = counts[1].item<std::int64_t>();
    if (accelerator.is_main_process())
      std::printf("epoch %d: %.1f%% of %ld\n", epoch, 100.0 * double(right) / double(seen), long(seen));
  }
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
