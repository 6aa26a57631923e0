// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/samplers.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randperm.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/worker_env.hpp"

namespace acc {
namespace {

void append(std::vector<std::size_t>& order, const at::Tensor& indices, std::size_t max_count) {
  const auto* first = indices.const_data_ptr<std::int64_t>();
  order.insert(order.end(), first, first + std::min(max_count, static_cast<std::size_t>(indices.numel())));
}

}  // namespace

std::vector<std::size_t> SequentialSampler::order(const SamplerPass& /*pass*/) const {
  return detail::plain_order(size_);
}

RandomSampler::RandomSampler(std::size_t size, const RandomSamplerOptions& options)
    : size_(size), replacement_(options.replacement), num_samples_(options.num_samples.value_or(size)) {
  if (size_ == 0 && num_samples_ > 0) throw Error({.what = "has no samples", .where = "RandomSampler"});
}

std::vector<std::size_t> RandomSampler::order(const SamplerPass& pass) const {
  // The block size of torch.utils.data.RandomSampler in torch 2.11, on which the numbers depend.
  constexpr std::size_t kBlock = 32;
  at::Generator generator = at::detail::createCPUGenerator(pass.seed);
  const auto size = static_cast<std::int64_t>(size_);
  std::vector<std::size_t> order;
  order.reserve(num_samples_);
  while (order.size() < num_samples_) {
    const std::size_t missing = num_samples_ - order.size();
    const auto block = static_cast<std::int64_t>(std::min(missing, kBlock));
    append(order,
           replacement_ ? at::randint(size, {block}, generator, at::TensorOptions(at::kLong))
                        : at::randperm(size, generator, at::TensorOptions(at::kLong)),
           missing);
  }
  return order;
}

std::vector<std::size_t> SubsetRandomSampler::order(const SamplerPass& pass) const {
  std::vector<std::size_t> order = detail::shuffled_order(indices_.size(), pass.seed);
  for (std::size_t& index : order) index = indices_[index];
  return order;
}

WeightedRandomSampler::WeightedRandomSampler(std::vector<double> weights, std::size_t num_samples,
                                             bool replacement)
    : weights_(std::move(weights)), num_samples_(num_samples), replacement_(replacement) {
  std::size_t above_zero = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (!std::isfinite(weights_[i]) || weights_[i] < 0) {
      throw Error({.what = fmt::format("weight {} is {}", i, weights_[i]), .where = "WeightedRandomSampler"});
    }
    if (weights_[i] > 0) ++above_zero;
  }
  if (above_zero == 0) throw Error({.what = "no weight is above 0", .where = "WeightedRandomSampler"});
  if (!replacement_ && num_samples_ > above_zero) {
    throw Error({.what = fmt::format("{} samples cannot be drawn from the {} that have a weight above 0",
                                     num_samples_, above_zero),
                 .where = "WeightedRandomSampler",
                 .hint = "draw with replacement"});
  }
}

std::vector<std::size_t> WeightedRandomSampler::order(const SamplerPass& pass) const {
  const at::Tensor weights =
      at::empty({static_cast<std::int64_t>(weights_.size())}, at::TensorOptions(at::kDouble));
  std::ranges::copy(weights_, weights.mutable_data_ptr<double>());
  std::vector<std::size_t> order;
  if (num_samples_ == 0) return order;
  append(order,
         at::multinomial(weights, static_cast<std::int64_t>(num_samples_), replacement_,
                         at::detail::createCPUGenerator(pass.seed)),
         num_samples_);
  return order;
}

LengthGroupedSampler::LengthGroupedSampler(std::vector<std::size_t> lengths, std::size_t batch_size)
    : lengths_(std::move(lengths)), batch_size_(batch_size) {
  if (batch_size_ == 0) throw Error({.what = "the batch size is 0", .where = "LengthGroupedSampler"});
}

std::vector<std::size_t> LengthGroupedSampler::order(const SamplerPass& pass) const {
  // As transformers, on which the order depends: groups of 50 batches, or at least four groups.
  constexpr std::size_t kMaxBatches = 50;
  constexpr std::size_t kMinGroups = 4;
  const std::size_t batches = lengths_.size() / (batch_size_ * kMinGroups);
  const std::size_t group = std::clamp<std::size_t>(batches, 1, kMaxBatches) * batch_size_;
  const auto longer = [&](std::size_t one, std::size_t other) { return lengths_[one] > lengths_[other]; };
  std::vector<std::size_t> order = detail::shuffled_order(lengths_.size(), pass.seed);
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += group) {
    const std::span part = std::span(order).subspan(begin, std::min(group, order.size() - begin));
    std::ranges::stable_sort(part, longer);
    if (longer(part.front(), order[longest])) longest = begin;
  }
  if (longest > 0) std::swap(order.front(), order[longest]);
  return order;
}

DistributedSamplerBase::DistributedSamplerBase(std::size_t size, const SamplerShare& share) : size_(size) {
  if (!share.process_index || !share.num_processes) {
    const WorkerEnv worker = read_worker_env(Environment::of_process());
    process_index_ = static_cast<std::size_t>(worker.rank);
    num_processes_ = static_cast<std::size_t>(worker.world_size);
  }
  process_index_ = share.process_index.value_or(process_index_);
  num_processes_ = share.num_processes.value_or(num_processes_);
  if (process_index_ < num_processes_) return;
  throw Error({.what = fmt::format("process {} is not one of {}", process_index_, num_processes_),
               .where = "DistributedSampler"});
}

std::vector<std::size_t> DistributedSamplerBase::part_of(const std::vector<std::size_t>& order) const {
  std::vector<std::size_t> mine;
  for (std::size_t i = process_index_; i < order.size(); i += num_processes_) mine.push_back(order[i]);
  return mine;
}

std::size_t DistributedSampler::total_size() const {
  const std::size_t rest = options_.drop_last ? 0 : num_processes() - 1;
  return (size() + rest) / num_processes() * num_processes();
}

std::vector<std::size_t> DistributedSampler::order(const SamplerPass& pass) const {
  std::vector<std::size_t> order =
      options_.shuffle ? detail::shuffled_order(size(), pass.seed) : detail::plain_order(size());
  const std::size_t total = total_size();
  if (total < order.size()) order.resize(total);
  for (std::size_t i = 0; order.size() < total; ++i) order.push_back(order[i]);
  return part_of(order);
}

std::vector<std::size_t> DistributedEvalSampler::order(const SamplerPass& pass) const {
  return part_of(shuffle_ ? detail::shuffled_order(size(), pass.seed) : detail::plain_order(size()));
}

}  // namespace acc
