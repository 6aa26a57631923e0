// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/sample_random.hpp"

#include <utility>

namespace acc {
namespace {

thread_local std::uint64_t seed_of_pass = 0;

// SplitMix64's finish: neighbouring seeds and indices give unrelated numbers.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace

std::uint64_t pass_seed() {
  return seed_of_pass;
}

PassSeed::PassSeed(std::uint64_t seed) : before_(std::exchange(seed_of_pass, seed)) {}

PassSeed::~PassSeed() {
  seed_of_pass = before_;
}

SampleRandom::SampleRandom(std::size_t index) : engine_(mix(mix(seed_of_pass) ^ index)) {}

// The standard's distributions differ between libraries, its engines do not.
double SampleRandom::uniform(double low, double high) {
  const double unit = static_cast<double>(engine_() >> 11U) * 0x1p-53;
  return low + unit * (high - low);
}

std::int64_t SampleRandom::below(std::int64_t count) {
  return static_cast<std::int64_t>(uniform() * static_cast<double>(count));
}

}  // namespace acc
