// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/timestamp.hpp"

#include <cstdlib>
#include <ctime>

#include "support/catch.hpp"

using namespace std::chrono_literals;

TEST_CASE("timestamp: ISO 8601 in local time, with the offset, to the millisecond", "[launch]") {
  ::setenv("TZ", "XYZ-01:30", 1);
  ::tzset();
  const auto when = std::chrono::system_clock::time_point(1'700'000'000s + 7ms);
  CHECK(acc::launcher::timestamp(when) == "2023-11-14T23:43:20.007+0130");
  ::unsetenv("TZ");
  ::tzset();
}
