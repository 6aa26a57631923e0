// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/silence.hpp"

#include "support/catch.hpp"

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

TEST_CASE("silence: a person is told who, for how long, and what follows", "[rendezvous]") {
  CHECK(silence_text("node b", {.duration = 3700ms}, 15s) ==
        "node b has been silent for 3 s; it counts as lost after 15 s");
  CHECK(silence_text("node b", {.duration = 4s, .over = true}, 15s) == "node b answers again, after 4 s");
}

TEST_CASE("silence: times are given in seconds", "[rendezvous]") {
  CHECK(seconds_text(60s) == "60 s");
  CHECK(seconds_text(500ms) == "0.5 s");
}
