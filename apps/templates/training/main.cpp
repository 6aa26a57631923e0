// SPDX-License-Identifier: Apache-2.0
// Trains on one process or many, on CPUs or GPUs, by the same lines:
//
//   build/@name@
//   acc launch --num_processes 2 build/@name@
#include <torch/optim/adamw.h>

#include <acc/acc.hpp>
#include <cstdio>

#include "model.hpp"

constexpr int kEpochs = 20;

int main(int /*argc*/, char** argv) try {
  acc::Accelerator accelerator;
  acc::set_seed(42);
  Net net;
  torch::optim::AdamW adamw(net->parameters(), 5e-3);
  auto [model, optimizer, train, test] = accelerator.prepare(
      net, std::move(adamw), acc::DataLoader(Spirals(2000), {.batch_size = 50, .shuffle = true}),
      acc::DataLoader(Spirals(500, 0.5), {.batch_size = 100}));

  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    model->train();
    for (auto& [points, arms] : train) {
      optimizer.zero_grad();
      const at::Tensor loss = torch::nll_loss(model(points), arms);
      accelerator.backward(loss);
      optimizer.step();
    }

    const torch::NoGradGuard no_grad;
    model->eval();
    at::Tensor right = torch::zeros({1}, torch::dtype(torch::kLong).device(accelerator.device()));
    std::int64_t total = 0;
    for (auto& [points, arms] : test) {
      const at::Tensor hits = accelerator.gather_for_metrics(model(points).argmax(1).eq(arms));
      right += hits.sum();
      total += hits.size(0);
    }
    accelerator.on_main_process([&] {
      std::printf("epoch %d: %.1f%% of %ld right\n", epoch, 100.0 * right.item<double>() / double(total),
                  long(total));
    });
  }
  accelerator.save_model(model, "@name@.safetensors");  // also for Python: safetensors.torch.load_file
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
