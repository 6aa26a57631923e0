// SPDX-License-Identifier: Apache-2.0
// The training of single_device.cpp on all GPUs of this machine by one process: torch's older way.
//
//   data_parallel [--data-dir FOLDER] [--epochs N]
#include <ATen/core/grad_mode.h>
#include <ATen/ops/nll_loss.h>
#include <torch/data/dataloader.h>
#include <torch/data/samplers/random.h>
#include <torch/data/samplers/sequential.h>
#include <torch/optim/adamw.h>
#include <torch/utils.h>

#include <cstdio>

#include "acc/error.hpp"
#include "acc/parallel.hpp"
#include "common/images.hpp"
#include "common/net.hpp"
#include "common/options.hpp"

int main(int argc, char** argv) try {
  const Options options = parse_options(argc, argv);
  torch::manual_seed(42);
  const Data data = load_data(options.data_dir);
  Net net(data.train.channels(), data.train.side());
  acc::DataParallel model(net.ptr());
  torch::optim::AdamW optimizer(net->parameters(), 1e-3);
  auto train = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(data.train, 64);
  auto test = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(data.test, 100);

  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    net->train();
    for (auto& [images, labels] : *train) {
      optimizer.zero_grad();
      const at::Tensor output = model(images);
      const at::Tensor loss = at::nll_loss(output, labels.to(output.device()));
      loss.backward();
      optimizer.step();
    }

    const at::NoGradGuard no_grad;
    net->eval();
    std::int64_t right = 0;
    std::int64_t total = 0;
    for (auto& [images, labels] : *test) {
      right += model(images).argmax(1).cpu().eq(labels).sum().item<std::int64_t>();
      total += labels.size(0);
    }
    std::printf("epoch %d: %.1f%% of %ld\n", epoch, 100.0 * double(right) / double(total), long(total));
  }
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
