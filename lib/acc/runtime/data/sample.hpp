// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>

namespace acc {

/// The seed of the pass that the calling thread reads: the loader's seed + epoch while a DataLoader reads
/// from a data set, else 0.
std::uint64_t pass_seed();

/// Random numbers for one sample in one pass: the same on every thread, on any number of workers and
/// processes, and after a restart.
class SampleRandom {
 public:
  /// Random numbers for sample `index` in the pass that this thread reads.
  explicit SampleRandom(std::size_t index);

  /// At least `low`, less than `high`.
  double uniform(double low = 0, double high = 1);
  /// 0 to count - 1; count at least 1.
  std::int64_t below(std::int64_t count);
  bool chance(double probability) { return uniform() < probability; }

 private:
  std::mt19937_64 engine_;
};

namespace detail {

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

/// Called in an exception handler while samples are read: throws an Error with the exception's text and the
/// sample that caused it, which is found by reading them one by one. The exception is nested in the Error;
/// anything but a std::exception is rethrown unchanged.
[[noreturn]] void throw_naming_sample(c10::ArrayRef<std::size_t> indices,
                                      const std::function<void(std::size_t)>& read_one);

/// The same where the sample is known.
[[noreturn]] void throw_naming_sample(std::size_t index);

}  // namespace detail

}  // namespace acc
