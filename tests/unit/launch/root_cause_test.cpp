// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/root_cause.hpp"

#include "support/catch.hpp"

using namespace acc;
using std::chrono::milliseconds;
using std::chrono::system_clock;

namespace {

WorkerFailure failed(int rank, int at_ms, std::optional<int> told_s = {}) {
  WorkerFailure failure = {.rank = rank, .when = system_clock::time_point(milliseconds(at_ms))};
  if (told_s) failure.error_file = ErrorFile{.when = system_clock::time_point(milliseconds(*told_s * 1000))};
  return failure;
}

}  // namespace

TEST_CASE("root_cause: the one that ended first", "[launch]") {
  CHECK(find_root_cause({failed(2, 10'100), failed(0, 10'200)}) == 0);
}

TEST_CASE("root_cause: an earlier error file wins over an earlier end", "[launch]") {
  CHECK(find_root_cause({failed(2, 10'100), failed(0, 12'000, 8)}) == 1);
  CHECK(find_root_cause({failed(2, 10'100, 9), failed(0, 10'200, 8), failed(1, 10'300, 7)}) == 2);
}

TEST_CASE("root_cause: within one second the order of the ends decides", "[launch]") {
  CHECK(find_root_cause({failed(2, 10'900), failed(0, 11'000, 10)}) == 0);
  CHECK(find_root_cause({failed(2, 10'100, 9), failed(0, 10'200, 9)}) == 0);
}
