// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace acc {

/// The seed of the pass that the calling thread reads for: while a data set reads for a DataLoader, the
/// loader's seed + epoch; else 0.
std::uint64_t pass_seed();

/// Sets pass_seed of the calling thread for its scope.
class PassSeed {
 public:
  explicit PassSeed(std::uint64_t seed);
  ~PassSeed();
  PassSeed(const PassSeed&) = delete;
  PassSeed& operator=(const PassSeed&) = delete;

 private:
  std::uint64_t before_;
};

/// Random numbers for one sample in one pass: the same on every thread, on any number of workers and
/// processes, and after a restart.
class SampleRandom {
 public:
  /// Of sample `index` in the pass that this thread reads for.
  explicit SampleRandom(std::size_t index);

  /// At least `low`, less than `high`.
  double uniform(double low = 0, double high = 1);
  /// 0 to count - 1; count at least 1.
  std::int64_t below(std::int64_t count);
  bool chance(double probability) { return uniform() < probability; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace acc
