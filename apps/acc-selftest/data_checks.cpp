// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include "acc/runtime/data/tensor_dataset.hpp"
#include "checks.hpp"

namespace acc::selftest {
namespace {

using Numbers = DataLoader<TensorDataset<1>>;

constexpr std::size_t kBatchSize = 8;

// 32 full batches for each process, and a few samples that fill no batch.
Numbers make_loader(Accelerator& accelerator, bool shuffle) {
  const std::int64_t samples = 32 * accelerator.num_processes() + 5;
  return accelerator.prepare(Numbers(TensorDataset<1>(at::arange(samples, at::kLong)),
                                     {.batch_size = kBatchSize, .shuffle = shuffle}));
}

at::Tensor read_all(Accelerator& accelerator, Numbers& loader) {
  std::vector<at::Tensor> parts;
  for (auto& [numbers] : loader) parts.push_back(accelerator.gather_for_metrics(numbers));
  return at::cat(parts);
}

at::Tensor every_sample(const Numbers& loader) {
  return at::arange(static_cast<std::int64_t>(loader.plan().dataset_size()), at::kLong);
}

}  // namespace

Complaint check_sharded_loading(Accelerator& accelerator) {
  Numbers loader = make_loader(accelerator, false);
  return read_all(accelerator, loader).equal(every_sample(loader))
             ? ""
             : "a sample is missing, twice or out of order";
}

Complaint check_shuffled_loading(Accelerator& accelerator) {
  Numbers loader = make_loader(accelerator, true);
  const at::Tensor first = read_all(accelerator, loader);
  const at::Tensor second = read_all(accelerator, loader);
  for (const at::Tensor& pass : {first, second}) {
    if (!std::get<0>(pass.sort()).equal(every_sample(loader))) return "a sample is missing or twice";
  }
  if (first.equal(second)) return "two epochs have the same order";
  loader.set_epoch(0);
  return read_all(accelerator, loader).equal(first) ? "" : "epoch 0 has another order the second time";
}

Complaint check_random_state(Accelerator& accelerator) {
  constexpr std::uint64_t kSeed = 42;
  set_seed(kSeed);
  const at::Tensor state = random_state();
  return accelerator.broadcast(state).equal(state) ? "" : "differs from the main process's";
}

}  // namespace acc::selftest
