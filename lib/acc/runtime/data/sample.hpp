// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>

namespace acc {

/// The seed of the pass that the calling thread is reading: the loader's seed + epoch while a DataLoader
/// reads from a data set, otherwise 0.
std::uint64_t pass_seed();

/// Random numbers for one sample in one pass: the same for every thread, any number of workers and processes,
/// and after a restart.
class SampleRandom {
 public:
  /// Random numbers for sample `index` in the pass that the calling thread is reading.
  explicit SampleRandom(std::size_t index);

  /// A number in [low, high).
  double uniform(double low = 0, double high = 1);
  /// A whole number from 0 to count - 1; `count` must be at least 1.
  std::int64_t below(std::int64_t count);
  bool chance(double probability) { return uniform() < probability; }  ///< True with this probability.

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

/// To be called in an exception handler around reading samples: throws an Error with the exception's text
/// that names the sample at fault, found by reading the samples one by one. The exception is nested in the
/// Error; anything but a std::exception is rethrown unchanged.
[[noreturn]] void throw_naming_sample(c10::ArrayRef<std::size_t> indices,
                                      const std::function<void(std::size_t)>& read_one);

/// The same if the sample is known.
[[noreturn]] void throw_naming_sample(std::size_t index);

}  // namespace detail

}  // namespace acc
