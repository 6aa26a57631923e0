// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/sample.hpp"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <string>
#include <utility>

#include "acc/base/error.hpp"

namespace acc {
namespace {

thread_local std::uint64_t seed_of_pass = 0;

// The finalizer of SplitMix64, which makes the results for neighbouring seeds and indices unrelated.
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

namespace detail {

PassSeed::PassSeed(std::uint64_t seed) : before_(std::exchange(seed_of_pass, seed)) {}

PassSeed::~PassSeed() {
  seed_of_pass = before_;
}

}  // namespace detail

SampleRandom::SampleRandom(std::size_t index) : engine_(mix(mix(seed_of_pass) ^ index)) {}

// std::uniform_real_distribution may differ between standard libraries, the engine does not.
double SampleRandom::uniform(double low, double high) {
  const double unit = static_cast<double>(engine_() >> 11U) * 0x1p-53;
  return low + unit * (high - low);
}

std::int64_t SampleRandom::below(std::int64_t count) {
  return static_cast<std::int64_t>(uniform() * static_cast<double>(count));
}

namespace {

[[noreturn]] void throw_as_error(const std::string& where) {
  try {
    throw;
  } catch (const Error& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems)
      problem.where = problem.where.empty() ? where : fmt::format("{}, {}", where, problem.where);
    std::throw_with_nested(Error(error.kind(), std::move(problems)));
  } catch (const c10::Error& error) {
    std::throw_with_nested(
        Error({.kind = ErrorKind::system, .what = error.what_without_backtrace(), .where = where}));
  } catch (const std::exception& error) {
    std::throw_with_nested(Error({.kind = ErrorKind::system, .what = error.what(), .where = where}));
  }
}

}  // namespace

namespace detail {

void throw_naming_sample(std::size_t index) {
  throw_as_error(fmt::format("sample {}", index));
}

void throw_naming_sample(c10::ArrayRef<std::size_t> indices,
                         const std::function<void(std::size_t)>& read_one) {
  if (indices.size() == 1) throw_naming_sample(indices.front());
  for (const std::size_t index : indices) {
    try {
      read_one(index);
    } catch (...) {
      throw_naming_sample(index);
    }
  }
  throw_as_error(fmt::format("a batch of {} samples, from sample {} on", indices.size(),
                             indices.empty() ? 0 : indices[0]));
}

}  // namespace detail

}  // namespace acc
