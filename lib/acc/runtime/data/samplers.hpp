// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "acc/runtime/data/batch_plan.hpp"

namespace acc {

/// The pass over a data set and the process for which a sampler is called.
struct SamplerPass {
  /// The loader's seed + the number of the pass.
  std::uint64_t seed = 0;
  std::size_t process_index = 0;
  std::size_t num_processes = 1;
};

/// Chooses the samples of a pass and their order. Pure: equal passes give equal orders, so that all processes
/// agree and a restored loader resumes exactly. The orders are those of torch.utils.data for a generator with
/// the pass's seed.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual std::vector<std::size_t> order(const SamplerPass& pass) const = 0;

  /// Whether `order` is the part of one process. A prepared loader distributes the order of any other
  /// sampler.
  virtual bool distributed() const { return false; }

  /// The number of processes of a distributed sampler; 0: that of the pass.
  virtual std::size_t num_processes() const { return 0; }
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
  /// Draws with replacement: some samples come twice and some never.
  bool replacement = false;
  /// The number of samples; default: the size of the data set. Without replacement, a sample is repeated only
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

/// The part of the samples that a distributed sampler gives. Default: that of this process in its job.
struct SamplerShare {
  std::optional<std::size_t> process_index = {};
  std::optional<std::size_t> num_processes = {};
};

/// A sampler that gives one process its part, in any loader: a prepared one does not divide it again. Its
/// constructor reads rank and world size from the launcher's variables.
class DistributedSamplerBase : public Sampler {
 public:
  bool distributed() const override { return true; }
  std::size_t num_processes() const override { return num_processes_; }
  std::size_t process_index() const { return process_index_; }

  /// The number of samples of the data set.
  std::size_t size() const { return size_; }

 protected:
  /// Throws Error{usage} for invalid variables and a process index out of range.
  DistributedSamplerBase(std::size_t size, const SamplerShare& share);

  /// Every num_processes-th of all samples, from this process's first.
  std::vector<std::size_t> part_of(const std::vector<std::size_t>& order) const;

 private:
  std::size_t size_;
  std::size_t process_index_ = 0;
  std::size_t num_processes_ = 1;
};

struct DistributedSamplerOptions {
  bool shuffle = true;
  /// Drops the last samples where the number does not divide, rather than repeating some.
  bool drop_last = false;
  SamplerShare share = {};
};

/// Every num_processes-th sample, the same number for each process: samples from the start are repeated where
/// the number does not divide. gather_for_metrics cannot recognize them; evaluate with
/// DistributedEvalSampler.
class DistributedSampler : public DistributedSamplerBase {
 public:
  explicit DistributedSampler(std::size_t size, const DistributedSamplerOptions& options = {})
      : DistributedSamplerBase(size, options.share), options_(options) {}
  std::vector<std::size_t> order(const SamplerPass& pass) const override;

  /// The samples of all processes in a pass, repeated ones included.
  std::size_t total_size() const;

 private:
  DistributedSamplerOptions options_;
};

/// Every num_processes-th sample, each for exactly one process: some processes may get one sample more.
/// Counts and sums are then exact under `reduce`, without repeated samples.
class DistributedEvalSampler : public DistributedSamplerBase {
 public:
  explicit DistributedEvalSampler(std::size_t size, bool shuffle = false, const SamplerShare& share = {})
      : DistributedSamplerBase(size, share), shuffle_(shuffle) {}
  std::vector<std::size_t> order(const SamplerPass& pass) const override;

  /// The samples of all processes in a pass: each once.
  std::size_t total_size() const { return size(); }

 private:
  bool shuffle_;
};

/// Chooses whole batches of any size; a prepared loader distributes them in turn. Pure, as a Sampler.
class BatchSampler {
 public:
  virtual ~BatchSampler() = default;
  virtual std::vector<BatchIndices> batches(const SamplerPass& pass) const = 0;
};

}  // namespace acc
