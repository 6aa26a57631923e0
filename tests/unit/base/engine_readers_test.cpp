// SPDX-License-Identifier: Apache-2.0
#include "acc/base/engine_readers.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace engine_readers_test {

using acc::EngineValue;
using acc::engines::read_number;
using acc::test::error_of;

TEST_CASE("engine_readers: a number is absent, or a whole one of at least its least", "[base]") {
  CHECK(read_number({{"SIZE", "2"}}, "SIZE", 1) == EngineValue<int>{2, "SIZE"});
  CHECK_FALSE(read_number({}, "SIZE"));
  CHECK_FALSE(read_number({{"", "2"}}, ""));
  CHECK(error_of([] { read_number({{"SIZE", "0"}}, "SIZE", 1); }) ==
        "SIZE: must be a whole number of at least 1, not '0' (the engine sets it; --engine none ignores it)");
}

TEST_CASE("engine_readers: what is missing is told beside what was found", "[base]") {
  CHECK(to_string(acc::engines::incomplete({.name = "Slurm"}, "A=1", "B")) ==
        "A=1 found, but not B: the rank of this process in the job of Slurm is not known (give --nnodes, "
        "--node-rank and --master-addr, or --engine none)");
}

}  // namespace engine_readers_test
