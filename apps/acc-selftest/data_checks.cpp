// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include "acc/runtime/data/tensor_batches.hpp"
#include "checks.hpp"

namespace acc::selftest {
namespace {

using Numbers = DataLoader<TensorDataset<1>>;

constexpr std::size_t kBatchSize = 8;

struct Setup {
  bool shuffle = false;
  /// The batch size is that of all processes together.
  bool split = false;
  /// The main process reads for all.
  bool dispatch = false;
};

// Four full batches for each process, and a few more samples.
at::Tensor samples_for(const Accelerator& accelerator) {
  return at::arange(32 * accelerator.num_processes() + 5, at::kLong);
}

Numbers make_loader(Accelerator& accelerator, const Setup& setup) {
  const auto processes = static_cast<std::size_t>(accelerator.num_processes());
  const at::Tensor samples = samples_for(accelerator);
  // What the main process reads for all, the others need not have.
  const bool has_samples = !setup.dispatch || accelerator.is_main_process();
  return accelerator.prepare(
      Numbers(TensorDataset<1>(has_samples ? samples : at::full_like(samples, -1)),
              {.batch_size = setup.split ? kBatchSize * processes : kBatchSize, .shuffle = setup.shuffle}));
}

// On the CPU.
at::Tensor read_all(Accelerator& accelerator, Numbers& loader) {
  std::vector<at::Tensor> parts;
  for (auto& [numbers] : loader) parts.push_back(accelerator.gather_for_metrics(numbers));
  return at::cat(parts).cpu();
}

Failure check_batch_size(Numbers& loader) {
  for (auto& [numbers] : loader)
    if (numbers.numel() > static_cast<std::int64_t>(kBatchSize)) return "a batch is too large";
  return {};
}

Failure check_in_order(Accelerator& accelerator, const Setup& setup) {
  Numbers loader = make_loader(accelerator, setup);
  if (!read_all(accelerator, loader).equal(samples_for(accelerator)))
    return "a sample is missing, twice or out of order";
  return check_batch_size(loader);
}

Failure check_shuffled(Accelerator& accelerator, const Setup& setup) {
  Numbers loader =
      make_loader(accelerator, {.shuffle = true, .split = setup.split, .dispatch = setup.dispatch});
  const at::Tensor first = read_all(accelerator, loader);
  const at::Tensor second = read_all(accelerator, loader);
  for (const at::Tensor& pass : {first, second}) {
    if (!std::get<0>(pass.sort()).equal(samples_for(accelerator))) return "a sample is missing or twice";
  }
  if (first.equal(second)) return "two epochs have the same order";
  loader.set_epoch(0);
  return read_all(accelerator, loader).equal(first) ? "" : "epoch 0 has another order the second time";
}

template <class CheckOne>
Failure with_and_without_split(bool dispatch, CheckOne check) {
  for (const bool split : {false, true}) {
    Accelerator accelerator({.split_batches = split, .dispatch_batches = dispatch});
    const Failure failure = check(accelerator, {.split = split, .dispatch = dispatch});
    if (!failure.empty()) return split ? "split batches: " + failure : failure;
  }
  return {};
}

// Two batches for each process, all of different sizes.
class GrowingBatches : public BatchSampler {
 public:
  std::vector<BatchIndices> batches(const SamplerPass& pass) const override {
    std::vector<BatchIndices> all(2 * pass.num_processes);
    std::size_t next = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      while (all[i].size() <= i) all[i].push_back(next++);
    }
    return all;
  }
};

}  // namespace

Failure check_sharded_loading(Accelerator& /*accelerator*/) {
  return with_and_without_split(/*dispatch=*/false, check_in_order);
}

Failure check_shuffled_loading(Accelerator& /*accelerator*/) {
  return with_and_without_split(/*dispatch=*/false, check_shuffled);
}

Failure check_dispatched_loading(Accelerator& /*accelerator*/) {
  return with_and_without_split(/*dispatch=*/true, check_in_order);
}

Failure check_dispatched_shuffling(Accelerator& /*accelerator*/) {
  return with_and_without_split(/*dispatch=*/true, check_shuffled);
}

Failure check_batch_sampler(Accelerator& accelerator) {
  const auto processes = static_cast<std::size_t>(accelerator.num_processes());
  const auto chosen = GrowingBatches().batches({.num_processes = processes});
  std::size_t samples = 0;
  for (const BatchIndices& batch : chosen) samples += batch.size();
  Numbers loader =
      accelerator.prepare(Numbers(TensorDataset<1>(at::arange(static_cast<std::int64_t>(samples), at::kLong)),
                                  {.batch_sampler = std::make_shared<GrowingBatches>()}));
  auto next = static_cast<std::size_t>(accelerator.process_index());
  for (auto& [numbers] : loader) {
    if (next >= chosen.size()) return "there are more batches than the sampler chose";
    const BatchIndices& wanted = chosen[next];
    const auto begin = static_cast<std::int64_t>(wanted.front());
    const auto size = static_cast<std::int64_t>(wanted.size());
    if (!numbers.cpu().equal(at::arange(begin, begin + size, at::kLong)))
      return fmt::format("batch {} is not the one that the sampler chose", next);
    next += processes;
  }
  return next < chosen.size() ? "a batch that the sampler chose is missing" : "";
}

Failure check_data_seed(Accelerator& accelerator) {
  const auto order = [&](std::uint64_t seed) {
    Numbers loader = accelerator.prepare(Numbers(TensorDataset<1>(samples_for(accelerator)),
                                                 {.batch_size = kBatchSize, .shuffle = true, .seed = seed}));
    return read_all(accelerator, loader);
  };
  const at::Tensor first = order(1);
  if (!order(1).equal(first)) return "the same seed gives another order the second time";
  return order(2).equal(first) ? "another seed gives the same order" : "";
}

Failure check_random_state(Accelerator& accelerator) {
  constexpr std::uint64_t kSeed = 42;
  at::randn({accelerator.process_index() + 1});  // each process has another state
  set_seed(kSeed);
  const at::Tensor state = random_state();
  return accelerator.broadcast(state).equal(state) ? "" : "differs from the main process's";
}

}  // namespace acc::selftest
