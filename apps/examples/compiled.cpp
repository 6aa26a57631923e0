// SPDX-License-Identifier: Apache-2.0
// Trains a model whose training step was compiled in Python: digits.py has it, and reads what was learnt.
//
//   acc compile digits.py:step --output net.pt2
//   acc launch --num_processes 2 compiled net.pt2 trained
//   python3 digits.py --test trained
#include <ATen/core/grad_mode.h>
#include <torch/optim/adamw.h>

#include <cstdio>

#include "acc/accelerator.hpp"
#include "acc/error.hpp"
#include "acc/modules.hpp"
#include "common/images.hpp"
#include "common/options.hpp"

int main(int argc, char** argv) try {
  const Options options =
      parse_known_options(argc, argv, "\nBefore them NET.pt2 and the folder for the weights\n");
  if (argc != 3) throw acc::Error({.what = "takes NET.pt2 and the folder for the weights"});
  acc::Accelerator accelerator;
  acc::set_seed(42, {.device_specific = true});
  const Data data = load_data(options.data_dir);
  // begin step
  acc::CompiledModel net(argv[1]);
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  auto [model, optimizer, train, test] = accelerator.prepare(
      net, std::move(adamw), acc::DataLoader(data.train, {.batch_size = 64, .shuffle = true}),
      acc::DataLoader(data.test, {.batch_size = 100}));

  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    model->train();
    for (auto& [images, labels] : train) {
      optimizer.zero_grad();
      auto [loss, outputs] = model(images, labels);
      accelerator.backward(loss);
      optimizer.step();
    }
  }
  accelerator.save_model(model, argv[2]);
  // end step

  const at::NoGradGuard no_grad;
  model->eval();
  std::int64_t right = 0;
  std::int64_t total = 0;
  for (auto& [images, labels] : test) {
    const auto [loss, outputs] = model(images, labels);
    const at::Tensor all = accelerator.gather_for_metrics(outputs.at(0).argmax(1).eq(labels));
    right += all.sum().item<std::int64_t>();
    total += all.size(0);
  }
  if (accelerator.is_main_process()) std::printf("%ld of %ld\n", long(right), long(total));
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
