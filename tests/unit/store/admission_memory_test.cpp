// SPDX-License-Identifier: Apache-2.0
#include "acc/store/admission.hpp"
#include "support/catch.hpp"

namespace admission_memory_test {

using acc::launcher::StrangerMemory;
using Ids = std::vector<StrangerMemory::Id>;

namespace {

constexpr std::size_t kKiB = 1024;

}  // namespace

TEST_CASE("stranger memory: within the limit no connection is closed", "[store]") {
  StrangerMemory memory(100 * kKiB);
  CHECK(memory.hold(1, 50 * kKiB).empty());
  CHECK(memory.hold(2, 50 * kKiB).empty());
  CHECK(memory.hold(1, 40 * kKiB).empty());
  CHECK(memory.total() == 90 * kKiB);
  CHECK(memory.hold(2, 0).empty());
  CHECK(memory.total() == 40 * kKiB);
  memory.release(1);
  memory.release(1);
  CHECK(memory.total() == 0);
}

TEST_CASE("stranger memory: the first to be closed has held much for longest", "[store]") {
  StrangerMemory memory(100 * kKiB);
  memory.hold(1, 20 * kKiB);
  memory.hold(2, 70 * kKiB);
  memory.hold(1, 21 * kKiB);
  CHECK(memory.hold(3, 20 * kKiB) == Ids{1});
  CHECK(memory.hold(4, 20 * kKiB) == Ids{2});
  CHECK(memory.hold(5, 101 * kKiB) == Ids{3, 4, 5});
  CHECK(memory.total() == 0);
}

TEST_CASE("stranger memory: small holders stay while there are large ones", "[store]") {
  StrangerMemory memory(100 * kKiB);
  for (StrangerMemory::Id id = 1; id <= 5; ++id) CHECK(memory.hold(id, 10 * kKiB).empty());
  CHECK(memory.hold(6, 50 * kKiB).empty());
  CHECK(memory.hold(7, 1) == Ids{6});
  // Its time begins again when it holds much again.
  memory.hold(8, 20 * kKiB);
  memory.hold(9, 20 * kKiB);
  memory.hold(8, 1 * kKiB);
  memory.hold(8, 20 * kKiB);
  CHECK(memory.hold(10, 20 * kKiB) == Ids{9});
}

TEST_CASE("stranger memory: of many small holders the largest is closed", "[store]") {
  StrangerMemory memory(100 * kKiB);
  for (StrangerMemory::Id id = 1; id <= 9; ++id) memory.hold(id, (id == 4 ? 12 : 10) * kKiB);
  CHECK(memory.hold(10, 10 * kKiB) == Ids{4});
}

}  // namespace admission_memory_test
