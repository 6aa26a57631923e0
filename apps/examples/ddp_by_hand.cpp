// SPDX-License-Identifier: Apache-2.0
// Distributed data parallelism with its parts in plain sight: each process has a copy of the model and a
// share of the data, and backward averages the gradients.
//
//   acc launch --num_processes 2 ddp_by_hand [--data-dir FOLDER] [--epochs N]
#include <ATen/core/grad_mode.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/zeros.h>
#include <torch/cuda.h>
#include <torch/optim/adamw.h>
#include <torch/utils.h>

#include <cstdio>

#include "acc/base/worker_env.hpp"
#include "acc/data.hpp"
#include "acc/error.hpp"
#include "acc/parallel.hpp"
#include "common/images.hpp"
#include "common/net.hpp"
#include "common/options.hpp"

int main(int argc, char** argv) try {
  const Options options = parse_options(argc, argv);
  // Setup: the launcher's variables say who this process is. NCCL carries what is on GPUs, Gloo the rest.
  const acc::WorkerEnv worker = acc::read_worker_env(acc::Environment::of_process());
  const auto group = std::make_shared<acc::ProcessGroup>(worker);
  const at::Device device =
      torch::cuda::is_available() ? at::Device(at::kCUDA, c10::DeviceIndex(worker.local_rank)) : at::kCPU;

  torch::manual_seed(42);
  const Data data = load_data(options.data_dir);
  Net net(data.train.channels(), data.train.side());
  net->to(device);
  acc::Ddp ddp(net.ptr(), group);
  torch::optim::AdamW optimizer(net->parameters(), 1e-3);
  // Batches are dealt out in turn. To train, each process must have as many as the others.
  acc::DataLoader train(data.train, {.batch_size = 64, .shuffle = true, .seed = 42});
  acc::DataLoader test(data.test, {.batch_size = 100});
  const auto rank = std::size_t(group->rank());
  const auto size = std::size_t(group->size());
  train.plan().set_shard({.index = rank, .count = size});
  test.plan().set_shard({.index = rank, .count = size, .even_batches = false});

  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    net->train();
    for (auto& [images, labels] : train) {
      optimizer.zero_grad();
      const at::Tensor loss = at::nll_loss(ddp(images.to(device)), labels.to(device));
      loss.backward();
      optimizer.step();
    }

    const at::NoGradGuard no_grad;
    net->eval();
    at::Tensor counts = at::zeros({2}, at::TensorOptions(at::kLong).device(device));
    for (auto& [images, labels] : test) {
      counts[0] += net(images.to(device)).argmax(1).eq(labels.to(device)).sum();
      counts[1] += labels.size(0);
    }
    group->all_reduce(counts, acc::ReduceOp::sum);
    const auto right = counts[0].item<double>();
    const auto seen = counts[1].item<std::int64_t>();
    if (group->rank() == 0)
      std::printf("epoch %d: %.1f%% of %ld\n", epoch, 100 * right / double(seen), long(seen));
  }
  group->barrier();  // cleanup: nobody leaves while another still talks to it
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
