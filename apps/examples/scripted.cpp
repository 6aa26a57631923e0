// SPDX-License-Identifier: Apache-2.0
// Trains a model that was made in Python: digits.py writes it, and reads what was learnt.
//
//   python3 digits.py net.pt
//   acc launch --num_processes 2 scripted net.pt trained
//   python3 digits.py --test trained
#include <ATen/core/grad_mode.h>
#include <ATen/ops/nll_loss.h>
#include <torch/optim/adamw.h>

#include <cstdio>

#include "acc/accelerator.hpp"
#include "acc/error.hpp"
#include "acc/modules.hpp"
#include "common/images.hpp"
#include "common/options.hpp"

int main(int argc, char** argv) try {
  const Options options =
      parse_known_options(argc, argv, "\nBefore them NET.PT and the folder for the weights\n");
  if (argc != 3) throw acc::Error({.what = "takes NET.PT and the folder for the weights"});
  acc::Accelerator accelerator;
  acc::set_seed(42);
  const Data data = load_data(options.data_dir);
  // begin script
  acc::ScriptModule net(argv[1]);
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  auto [model, optimizer, train, test] = accelerator.prepare(
      net, std::move(adamw), acc::DataLoader(data.train, {.batch_size = 64, .shuffle = true}),
      acc::DataLoader(data.test, {.batch_size = 100}));

  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    model->train();
    for (auto& [images, labels] : train) {
      optimizer.zero_grad();
      accelerator.backward(at::nll_loss(model(images), labels));
      optimizer.step();
    }
  }
  accelerator.save_model(model, argv[2]);
  // end script

  const at::NoGradGuard no_grad;
  model->eval();
  std::int64_t right = 0;
  std::int64_t total = 0;
  for (auto& [images, labels] : test) {
    const at::Tensor all = accelerator.gather_for_metrics(model(images).argmax(1).eq(labels));
    right += all.sum().item<std::int64_t>();
    total += all.size(0);
  }
  if (accelerator.is_main_process()) std::printf("%ld of %ld\n", long(right), long(total));
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
