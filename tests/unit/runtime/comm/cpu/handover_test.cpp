// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/handover.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <future>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "acc/runtime/comm/cpu/segment.hpp"
#include "support/catch.hpp"

namespace handover_test {

using namespace std::chrono_literals;
using acc::Descriptor;
using acc::detail::Handover;
using acc::detail::Segment;

namespace {

Descriptor nothing() {
  return {};
}

}  // namespace

TEST_CASE("handover: all ranks get the memory of the first, and each other's process", "[runtime]") {
  constexpr int kSize = 3;
  std::vector<Handover> ranks(kSize);
  const std::string address = ranks[0].address();
  for (int rank = 0; rank < kSize; ++rank)
    REQUIRE(ranks[static_cast<std::size_t>(rank)].connect(rank, kSize, address));

  std::vector<std::future<Handover::Shared>> others;
  for (int rank = 1; rank < kSize; ++rank)
    others.push_back(std::async(std::launch::async, [&ranks, rank] {
      return ranks[static_cast<std::size_t>(rank)].exchange(nothing, 1min);
    }));
  const Handover::Shared first = ranks[0].exchange([] { return Segment::create(kSize); }, 1min);
  const Segment segment(first.memory, kSize);
  segment.progress(0).posted = 7;
  CHECK(first.processes.size() == kSize);
  for (auto& other : others) {
    const Handover::Shared shared = other.get();
    CHECK(Segment(shared.memory, kSize).progress(0).posted == 7);
    CHECK(shared.processes.size() == kSize);
  }
}

TEST_CASE("handover: an address of another machine, or of nobody, is not connected to", "[runtime]") {
  Handover process;
  CHECK_FALSE(process.connect(1, 2, ""));
  CHECK_FALSE(process.connect(1, 2, "acc-0123456789/secret"));
}

TEST_CASE("handover: who does not know the secret gets nothing", "[runtime]") {
  Handover first;
  Handover stranger;
  REQUIRE(first.connect(0, 2, first.address()));
  REQUIRE(stranger.connect(1, 2, first.address().substr(0, first.address().find('/')) + "/guessed"));
  CHECK_THROWS_WITH(first.exchange([] { return Segment::create(2); }, 1min),
                    "cannot hand over the shared memory: no answer from rank 1");
  CHECK_THROWS_WITH(stranger.exchange(nothing, 1min),
                    "cannot hand over the shared memory: no answer from rank 0");
}

TEST_CASE("handover: nobody waits for a rank that failed", "[runtime]") {
  Handover first;
  Handover second;
  REQUIRE(first.connect(0, 2, first.address()));
  REQUIRE(second.connect(1, 2, first.address()));
  SECTION("because it has no memory") {
    CHECK_THROWS_WITH(first.exchange([]() -> Descriptor { throw std::runtime_error("none left"); }, 1min),
                      "none left");
    CHECK_THROWS_WITH(second.exchange(nothing, 1h),
                      "cannot hand over the shared memory: no answer from rank 0");
  }
  SECTION("because it could not take it") {
    CHECK_THROWS_WITH(second.exchange(nothing, 0ms),
                      "cannot hand over the shared memory: no answer from rank 0");
    CHECK_THROWS_WITH(first.exchange([] { return Segment::create(2); }, 1h),
                      "cannot hand over the shared memory: no answer from rank 1");
  }
}

TEST_CASE("segment: memory of another size is refused, and its size cannot change", "[runtime]") {
  const Descriptor memory = Segment::create(2);
  CHECK_THROWS(Segment(memory, 3));
  CHECK(::ftruncate(memory.get(), 4096) != 0);
}

}  // namespace handover_test
