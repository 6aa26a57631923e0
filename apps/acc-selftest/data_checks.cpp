// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include "acc/runtime/data/tensor_dataset.hpp"
#include "checks.hpp"

namespace acc::selftest {
namespace {

using Numbers = DataLoader<TensorDataset<1>>;

constexpr std::size_t kBatchSize = 8;

struct Setup {
  bool shuffle = false;
  /// Each process has its part of each batch, which is that of all together.
  bool split = false;
};

// 32 full batches for each process, and a few samples that fill no batch.
Numbers make_loader(Accelerator& accelerator, const Setup& setup) {
  const std::int64_t samples = 32 * accelerator.num_processes() + 5;
  const auto processes = static_cast<std::size_t>(accelerator.num_processes());
  return accelerator.prepare(
      Numbers(TensorDataset<1>(at::arange(samples, at::kLong)),
              {.batch_size = setup.split ? kBatchSize * processes : kBatchSize, .shuffle = setup.shuffle}));
}

at::Tensor read_all(Accelerator& accelerator, Numbers& loader) {
  std::vector<at::Tensor> parts;
  for (auto& [numbers] : loader) parts.push_back(accelerator.gather_for_metrics(numbers));
  return at::cat(parts);
}

at::Tensor every_sample(Numbers& loader) {
  return at::arange(static_cast<std::int64_t>(loader.dataset().size()), at::kLong);
}

Complaint check_in_order(Accelerator& accelerator, bool split) {
  Numbers loader = make_loader(accelerator, {.shuffle = false, .split = split});
  return read_all(accelerator, loader).equal(every_sample(loader))
             ? ""
             : "a sample is missing, twice or out of order";
}

Complaint check_shuffled(Accelerator& accelerator, bool split) {
  Numbers loader = make_loader(accelerator, {.shuffle = true, .split = split});
  const at::Tensor first = read_all(accelerator, loader);
  const at::Tensor second = read_all(accelerator, loader);
  for (const at::Tensor& pass : {first, second}) {
    if (!std::get<0>(pass.sort()).equal(every_sample(loader))) return "a sample is missing or twice";
  }
  if (first.equal(second)) return "two epochs have the same order";
  loader.set_epoch(0);
  return read_all(accelerator, loader).equal(first) ? "" : "epoch 0 has another order the second time";
}

template <class CheckOne>
Complaint with_and_without_split(CheckOne check) {
  for (const bool split : {false, true}) {
    Accelerator accelerator({.split_batches = split});
    const Complaint complaint = check(accelerator, split);
    if (!complaint.empty()) return split ? "split batches: " + complaint : complaint;
  }
  return {};
}

}  // namespace

Complaint check_sharded_loading(Accelerator& /*accelerator*/) {
  return with_and_without_split(check_in_order);
}

Complaint check_shuffled_loading(Accelerator& /*accelerator*/) {
  return with_and_without_split(check_shuffled);
}

Complaint check_random_state(Accelerator& accelerator) {
  constexpr std::uint64_t kSeed = 42;
  set_seed(kSeed);
  const at::Tensor state = random_state();
  return accelerator.broadcast(state).equal(state) ? "" : "differs from the main process's";
}

}  // namespace acc::selftest
