// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/sample.hpp"

#include <c10/util/Exception.h>

#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace sample_test {

namespace {

double first_of(std::uint64_t seed, std::size_t index) {
  const acc::detail::PassSeed pass(seed);
  return acc::SampleRandom(index).uniform();
}

}  // namespace

TEST_CASE("sample_random: numbers depend only on the pass and the sample", "[runtime]") {
  double elsewhere = 0;
  std::thread([&] { elsewhere = first_of(4, 9); }).join();
  CHECK(elsewhere == first_of(4, 9));
  std::set<double> different;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    for (std::size_t index = 0; index < 30; ++index) different.insert(first_of(seed, index));
  }
  CHECK(different.size() == 900);
}

TEST_CASE("sample_random: numbers cover the requested range", "[runtime]") {
  double sum = 0;
  std::set<std::int64_t> wholes;
  int heads = 0;
  for (std::size_t index = 0; index < 4000; ++index) {
    acc::SampleRandom random(index);
    const double number = random.uniform(-1, 3);
    CHECK((number >= -1 && number < 3));
    sum += number;
    wholes.insert(random.below(5));
    if (random.chance(0.25)) ++heads;
  }
  CHECK(std::abs(sum / 4000 - 1) < 0.1);
  CHECK(wholes == std::set<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(std::abs(heads - 1000) < 150);
}

TEST_CASE("sample_random: a pass ends with its scope", "[runtime]") {
  CHECK(acc::pass_seed() == 0);
  {
    const acc::detail::PassSeed outer(3);
    {
      const acc::detail::PassSeed inner(4);
    }
    CHECK(acc::pass_seed() == 3);
  }
  CHECK(acc::pass_seed() == 0);
}

namespace {

// The Error that results when reading sample 5 fails in a batch of 4, 5 and 6.
acc::Error error_of(const std::function<void()>& fail) {
  const auto read_one = [&](std::size_t index) {
    if (index == 5) fail();
  };
  try {
    try {
      fail();
    } catch (...) {
      acc::detail::throw_naming_sample({4, 5, 6}, read_one);
    }
  } catch (const acc::Error& error) {
    return error;
  }
  return acc::Error({.what = "none"});
}

}  // namespace

TEST_CASE("sample_error: the sample at fault is found and named with the exception's text", "[runtime]") {
  CHECK(std::string(error_of([] { throw std::out_of_range("no such row"); }).what()) ==
        "sample 5: no such row");
  const acc::Error error = error_of([] { TORCH_CHECK(false, "expected 3 channels"); });
  CHECK(std::string(error.what()) == "sample 5: expected 3 channels");
}

TEST_CASE("sample_error: an Error keeps its kind, file and hint", "[runtime]") {
  const acc::Error error = error_of([] {
    throw acc::Error(
        {.kind = acc::ErrorKind::config, .what = "is torn", .where = "a.jpg", .hint = "copy it"});
  });
  CHECK(error.kind() == acc::ErrorKind::config);
  CHECK(error.problems().front() == acc::Problem{"is torn", "sample 5, a.jpg", "copy it"});
}

TEST_CASE("sample_error: an error of the batch as a whole names the batch", "[runtime]") {
  try {
    try {
      throw std::runtime_error("different sizes");
    } catch (...) {
      acc::detail::throw_naming_sample({4, 5, 6}, [](std::size_t /*index*/) {});
    }
    FAIL("no error");
  } catch (const acc::Error& error) {
    CHECK(std::string(error.what()) == "a batch of 3 samples, from sample 4 on: different sizes");
    CHECK_THROWS_AS(std::rethrow_if_nested(error), std::runtime_error);
  }
}

TEST_CASE("sample_error: anything but a std::exception passes unchanged", "[runtime]") {
  const auto pass = [] {
    try {
      throw 7;
    } catch (...) {
      acc::detail::throw_naming_sample(3);
    }
  };
  CHECK_THROWS_AS(pass(), int);
}

}  // namespace sample_test
