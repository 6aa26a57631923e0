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
  /// The loader's seed + epoch.
  std::uint64_t seed = 0;
  std::size_t process_index = 0;  ///< The process that asks.
  std::size_t num_processes = 1;  ///< How many there are.
};

/// Chooses the samples of a pass and their order. `order` must be a pure function of the pass, so that all
/// processes agree and a restored loader resumes exactly. acc's samplers give the orders of torch.utils.data
/// with a generator that has the pass's seed.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// The indices of the samples of the pass, in order.
  virtual std::vector<std::size_t> order(const SamplerPass& pass) const = 0;

  /// Whether `order` is the part of one process. The order of any other sampler is distributed over the
  /// processes by a prepared loader.
  virtual bool distributed() const { return false; }

  /// For a distributed sampler: the number of processes; 0: that of the pass.
  virtual std::size_t num_processes() const { return 0; }
};

/// 0, 1, 2, ...
class SequentialSampler : public Sampler {
 public:
  explicit SequentialSampler(std::size_t size) : size_(size) {}
  std::vector<std::size_t> order(const SamplerPass& pass) const override;  ///< See Sampler.

 private:
  std::size_t size_;
};

/// How a RandomSampler draws.
struct RandomSamplerOptions {
  /// Draws with replacement: a sample may be drawn several times or never.
  bool replacement = false;
  /// The number of samples; default: the size of the data set. Without replacement, a sample is repeated only
  /// after all others.
  std::optional<std::size_t> num_samples = {};
};

/// All samples in a random order, or some of them.
class RandomSampler : public Sampler {
 public:
  /// Throws Error{usage} when samples are to be drawn from an empty data set.
  explicit RandomSampler(std::size_t size, const RandomSamplerOptions& options = {});
  std::vector<std::size_t> order(const SamplerPass& pass) const override;  ///< See Sampler.

 private:
  std::size_t size_;
  bool replacement_;
  std::size_t num_samples_;
};

/// The given samples, in random order.
class SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<std::size_t> indices) : indices_(std::move(indices)) {}
  std::vector<std::size_t> order(const SamplerPass& pass) const override;  ///< See Sampler.

 private:
  std::vector<std::size_t> indices_;
};

/// Draws sample i with a probability proportional to weights[i].
class WeightedRandomSampler : public Sampler {
 public:
  /// Throws Error{usage} for a weight that is negative or not finite, when no weight is above 0, or when,
  /// without replacement, there are fewer positive weights than samples to draw.
  WeightedRandomSampler(std::vector<double> weights, std::size_t num_samples, bool replacement = true);
  std::vector<std::size_t> order(const SamplerPass& pass) const override;  ///< See Sampler.

 private:
  std::vector<double> weights_;
  std::size_t num_samples_;
  bool replacement_;
};

/// All samples in a random order in which those of a batch are of similar lengths: transformers'
/// LengthGroupedSampler. The longest sample is the first, so that memory runs out at once or never.
class LengthGroupedSampler : public Sampler {
 public:
  /// `batch_size` is the number of samples that are read together. Throws Error{usage} if it is 0.
  LengthGroupedSampler(std::vector<std::size_t> lengths, std::size_t batch_size);
  std::vector<std::size_t> order(const SamplerPass& pass) const override;  ///< See Sampler.

 private:
  std::vector<std::size_t> lengths_;
  std::size_t batch_size_;
};

/// The process for which a distributed sampler chooses samples. Default: this process in its job.
struct SamplerShare {
  std::optional<std::size_t> process_index = {};  ///< The process whose part it is.
  std::optional<std::size_t> num_processes = {};  ///< The number of parts.
};

/// A sampler that gives one process its part of the samples, in prepared and other loaders: a prepared loader
/// does not divide the part again. The constructor reads RANK and WORLD_SIZE, which the launcher sets.
class DistributedSamplerBase : public Sampler {
 public:
  bool distributed() const override { return true; }
  std::size_t num_processes() const override { return num_processes_; }
  /// The process whose part this is; default: that of the pass.
  std::size_t process_index() const { return process_index_; }

  /// The number of samples of the data set.
  std::size_t size() const { return size_; }

 protected:
  /// Throws Error{usage} for invalid environment variables or a process index out of range.
  DistributedSamplerBase(std::size_t size, const SamplerShare& share);

  /// Every num_processes-th element of `order`, beginning with element process_index.
  std::vector<std::size_t> part_of(const std::vector<std::size_t>& order) const;

 private:
  std::size_t size_;
  std::size_t process_index_ = 0;
  std::size_t num_processes_ = 1;
};

/// The options of a DistributedSampler.
struct DistributedSamplerOptions {
  bool shuffle = true;  ///< Reads in a new random order in each pass.
  /// Drops the last samples if they cannot be divided evenly, instead of repeating some.
  bool drop_last = false;
  SamplerShare share = {};  ///< The process whose part it is.
};

/// Gives each process the same number of samples: every num_processes-th. If they cannot be divided evenly,
/// samples from the start are repeated. gather_for_metrics cannot recognize the repetitions; use
/// DistributedEvalSampler for evaluation.
class DistributedSampler : public DistributedSamplerBase {
 public:
  explicit DistributedSampler(std::size_t size, const DistributedSamplerOptions& options = {})
      : DistributedSamplerBase(size, options.share), options_(options) {}
  std::vector<std::size_t> order(const SamplerPass& pass) const override;  ///< The part of one process.

  /// The samples of all processes in a pass, repeated ones included.
  std::size_t total_size() const;

 private:
  DistributedSamplerOptions options_;
};

/// Gives each sample to exactly one process: every num_processes-th. Some processes may get one sample more.
/// Counts and sums over all processes with `reduce` are then exact.
class DistributedEvalSampler : public DistributedSamplerBase {
 public:
  explicit DistributedEvalSampler(std::size_t size, bool shuffle = false, const SamplerShare& share = {})
      : DistributedSamplerBase(size, share), shuffle_(shuffle) {}
  std::vector<std::size_t> order(const SamplerPass& pass) const override;  ///< The part of one process.

  /// The samples of all processes in a pass: each once.
  std::size_t total_size() const { return size(); }

 private:
  bool shuffle_;
};

/// Chooses batches, of any size; a prepared loader deals them out to the processes in turn. Must be pure, as
/// a Sampler.
class BatchSampler {
 public:
  virtual ~BatchSampler() = default;
  /// The batches of the pass, each by the indices of its samples.
  virtual std::vector<BatchIndices> batches(const SamplerPass& pass) const = 0;
};

}  // namespace acc
