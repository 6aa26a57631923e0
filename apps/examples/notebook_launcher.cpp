// SPDX-License-Identifier: Apache-2.0
// The training of accelerated.cpp on two processes, which the program starts itself: by the same lines in a
// notebook's cell.
//
//   notebook_launcher [--data-dir FOLDER] [--epochs N]
#include <ATen/core/grad_mode.h>
#include <ATen/ops/nll_loss.h>
#include <torch/optim/adamw.h>

#include <cstdio>

#include "acc/accelerator.hpp"
#include "acc/error.hpp"
#include "acc/notebook.hpp"
#include "common/images.hpp"
#include "common/net.hpp"
#include "common/options.hpp"

// begin train
// The share of the test images that are told right, after each epoch.
std::vector<double> train(const Data& data, double learning_rate, int epochs) {
  acc::Accelerator accelerator;
  acc::set_seed(42);
  Net net(data.train.channels(), data.train.side());
  torch::optim::AdamW adamw(net->parameters(), learning_rate);
  auto [model, optimizer, train, test] = accelerator.prepare(
      net, std::move(adamw), acc::DataLoader(data.train, {.batch_size = 64, .shuffle = true}),
      acc::DataLoader(data.test, {.batch_size = 100}));

  std::vector<double> accuracies;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    model->train();
    for (auto& [images, labels] : train) {
      optimizer.zero_grad();
      accelerator.backward(at::nll_loss(model(images), labels));
      optimizer.step();
    }

    const at::NoGradGuard no_grad;
    model->eval();
    std::int64_t right = 0;
    for (auto& [images, labels] : test)
      right += accelerator.gather_for_metrics(model(images).argmax(1).eq(labels)).sum().item<std::int64_t>();
    accuracies.push_back(double(right) / double(*data.test.size()));
    accelerator.print("epoch " + std::to_string(epoch) + " of " + std::to_string(epochs));
  }
  return accuracies;
}
// end train

int main(int argc, char** argv) try {
  // begin launch
  const Options options = parse_options(argc, argv);
  const Data data = load_data(options.data_dir);
  const auto of_ranks =
      acc::notebook_launcher(train, std::tuple{data, 1e-3, options.epochs}, {.num_processes = 2});
  for (const double accuracy : of_ranks.at(0)) std::printf("accuracy: %.1f%%\n", 100 * accuracy);
  // end launch
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
