// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "acc/runtime/data/batch_plan.hpp"

namespace acc {

/// Which pass over a data set a sampler is asked for, and by which process.
struct SamplerPass {
  /// The loader's seed + the number of the pass.
  std::uint64_t seed = 0;
  std::size_t process_index = 0;
  std::size_t num_processes = 1;
};

/// Chooses the samples of a pass and their order. Pure: equal passes give equal orders, so that all processes
/// agree and a restored loader goes on where it was. The orders are those of torch.utils.data for a generator
/// with the pass's seed.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual std::vector<std::size_t> order(const SamplerPass& pass) const = 0;

  /// Whether `order` is one process's part. A prepared loader deals out the order of any other sampler.
  virtual bool distributed() const { return false; }
};

/// 0, 1, 2, ...
class SequentialSampler : public Sampler {
 public:
  explicit SequentialSampler(std::size_t size) : size_(size) {}
  std::vector<std::size_t> order(const SamplerPass& pass) const override;

 private:
  std::size_t size_;
};

struct RandomSamplerOptions {
  /// Draws each sample from all, so that some come twice and some never.
  bool replacement = false;
  /// How many to draw; default: the size of the data set. Without replacement, a sample comes again only
  /// after all others.
  std::optional<std::size_t> num_samples = {};
};

class RandomSampler : public Sampler {
 public:
  /// Throws Error{usage} when samples are to be drawn from none.
  explicit RandomSampler(std::size_t size, const RandomSamplerOptions& options = {});
  std::vector<std::size_t> order(const SamplerPass& pass) const override;

 private:
  std::size_t size_;
  bool replacement_;
  std::size_t num_samples_;
};

/// The given samples, in random order.
class SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<std::size_t> indices) : indices_(std::move(indices)) {}
  std::vector<std::size_t> order(const SamplerPass& pass) const override;

 private:
  std::vector<std::size_t> indices_;
};

/// Draws sample i with a probability proportional to weights[i].
class WeightedRandomSampler : public Sampler {
 public:
  /// Throws Error{usage} for a weight that is negative or not finite, when no weight is above 0, or when
  /// without replacement more samples are to be drawn than have a weight.
  WeightedRandomSampler(std::vector<double> weights, std::size_t num_samples, bool replacement = true);
  std::vector<std::size_t> order(const SamplerPass& pass) const override;

 private:
  std::vector<double> weights_;
  std::size_t num_samples_;
  bool replacement_;
};

struct DistributedSamplerOptions {
  bool shuffle = true;
  /// Leaves out the samples that do not divide, rather than repeating some.
  bool drop_last = false;
};

/// Every num_processes-th sample, as many for each process: samples from the start come again where the
/// number does not divide. gather_for_metrics cannot tell them apart; evaluate with DistributedEvalSampler.
class DistributedSampler : public Sampler {
 public:
  explicit DistributedSampler(std::size_t size, const DistributedSamplerOptions& options = {})
      : size_(size), options_(options) {}
  std::vector<std::size_t> order(const SamplerPass& pass) const override;
  bool distributed() const override { return true; }

 private:
  std::size_t size_;
  DistributedSamplerOptions options_;
};

/// Every num_processes-th sample, each for exactly one process: some processes may get one sample more.
/// Counts and sums are then exact under `reduce`, without repeated samples.
class DistributedEvalSampler : public Sampler {
 public:
  explicit DistributedEvalSampler(std::size_t size, bool shuffle = false) : size_(size), shuffle_(shuffle) {}
  std::vector<std::size_t> order(const SamplerPass& pass) const override;
  bool distributed() const override { return true; }

 private:
  std::size_t size_;
  bool shuffle_;
};

/// Chooses whole batches, of any sizes: a prepared loader deals them out in turn. Pure, as a Sampler.
class BatchSampler {
 public:
  virtual ~BatchSampler() = default;
  virtual std::vector<BatchIndices> batches(const SamplerPass& pass) const = 0;
};

}  // namespace acc
