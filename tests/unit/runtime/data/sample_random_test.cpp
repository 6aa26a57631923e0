// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/sample_random.hpp"

#include <set>
#include <thread>

#include "support/catch.hpp"

namespace {

double first_of(std::uint64_t seed, std::size_t index) {
  const acc::PassSeed pass(seed);
  return acc::SampleRandom(index).uniform();
}

}  // namespace

TEST_CASE("sample_random: numbers follow from the pass and the sample alone", "[runtime]") {
  double elsewhere = 0;
  std::thread([&] { elsewhere = first_of(4, 9); }).join();
  CHECK(elsewhere == first_of(4, 9));
  std::set<double> different;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    for (std::size_t index = 0; index < 30; ++index) different.insert(first_of(seed, index));
  }
  CHECK(different.size() == 900);
}

TEST_CASE("sample_random: numbers are spread over what was asked for", "[runtime]") {
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
    const acc::PassSeed outer(3);
    { const acc::PassSeed inner(4); }
    CHECK(acc::pass_seed() == 3);
  }
  CHECK(acc::pass_seed() == 0);
}
