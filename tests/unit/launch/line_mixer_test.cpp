// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/line_mixer.hpp"

#include <string>

#include "support/catch.hpp"

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

struct Mixed {
  std::string text = {};
  LineMixer::TimePoint now = LineMixer::TimePoint(1h);
  LineMixer mixer{[this](std::string_view part) { text += part; }};
  int a = mixer.add_source();
  int b = mixer.add_source();
  int c = mixer.add_source();

  void says(int source, std::string_view chunk, bool drained = true) {
    mixer.feed(source, chunk, drained, now);
  }
  void passes(std::chrono::milliseconds time) {
    const LineMixer::TimePoint end = now + time;
    for (auto due = mixer.deadline(); due && *due <= end; due = mixer.deadline()) {
      now = *due;
      mixer.on_time(now);
    }
    now = end;
  }
};

}  // namespace

TEST_CASE("line_mixer: whole lines and prompts pass at once", "[launch]") {
  Mixed mixed;
  mixed.says(mixed.a, "one\ntwo\n");
  CHECK(mixed.text == "one\ntwo\n");
  mixed.says(mixed.a, "name? ");
  CHECK(mixed.text == "one\ntwo\nname? ");
  CHECK_FALSE(mixed.mixer.deadline());
}

TEST_CASE("line_mixer: a line is not torn by another source", "[launch]") {
  Mixed mixed;
  mixed.says(mixed.a, "begin-");
  mixed.says(mixed.b, "other\n");
  CHECK(mixed.text == "begin-");
  CHECK(mixed.mixer.waiting(mixed.b) == 6);
  mixed.says(mixed.a, "end\n");
  CHECK(mixed.text == "begin-end\nother\n");
  CHECK(mixed.mixer.waiting(mixed.b) == 0);
}

TEST_CASE("line_mixer: those who wait go in the order in which they came", "[launch]") {
  Mixed mixed;
  mixed.says(mixed.a, "a");
  mixed.says(mixed.c, "c1\n");
  mixed.says(mixed.b, "b1\nb2");
  mixed.says(mixed.c, "c2\n");
  mixed.says(mixed.a, "\n");
  CHECK(mixed.text == "a\nc1\nc2\nb1\nb2");
}

TEST_CASE("line_mixer: who is silent in the middle of a line loses its turn, a progress bar at once",
          "[launch]") {
  Mixed mixed;
  SECTION("a line that was cut off may still be coming") {
    mixed.says(mixed.a, "begun");
    mixed.says(mixed.b, "line\n");
    mixed.passes(1999ms);
    CHECK(mixed.text == "begun");
    mixed.passes(1ms);
    CHECK(mixed.text == "begunline\n");
  }
  SECTION("a progress bar has no end") {
    mixed.says(mixed.a, "\r50%");
    mixed.says(mixed.b, "line\n");
    mixed.passes(99ms);
    CHECK(mixed.text == "\r50%");
    mixed.passes(1ms);
    CHECK(mixed.text == "\r50%line\n");
  }
}

TEST_CASE("line_mixer: a progress bar that is never silent holds the others for a second at most",
          "[launch]") {
  Mixed mixed;
  mixed.says(mixed.a, "\r0%");
  mixed.says(mixed.b, "line\n");
  for (int i = 0; i < 25; ++i) {
    mixed.passes(50ms);
    mixed.says(mixed.a, "\r1%");
  }
  CHECK(mixed.text.find("line\n") != std::string::npos);
}

TEST_CASE("line_mixer: a chunk that is cut in a flood holds nobody up", "[launch]") {
  Mixed mixed;
  mixed.says(mixed.a, "one\ntw", false);
  mixed.says(mixed.b, "other\n");
  CHECK(mixed.text == "one\nother\n");
  mixed.says(mixed.a, "o\nthree", false);
  CHECK(mixed.text == "one\nother\ntwo\n");
  mixed.says(mixed.a, "", true);
  CHECK(mixed.text == "one\nother\ntwo\nthree");
}

TEST_CASE("line_mixer: who is never at the end of a line lets the others write where one of its lines ends",
          "[launch]") {
  Mixed mixed;
  mixed.says(mixed.a, "a1\na");
  mixed.says(mixed.b, "b1\nb");
  mixed.says(mixed.a, "2\na");
  CHECK(mixed.text == "a1\na2\nb1\na");
  mixed.says(mixed.a, "3\na");
  mixed.says(mixed.b, "2\nb");
  CHECK(mixed.text == "a1\na2\nb1\na3\nb2\na");
}

TEST_CASE("line_mixer: a very long line is written as it comes, and stays whole", "[launch]") {
  Mixed mixed;
  const std::string part(40 << 10, 'x');
  mixed.says(mixed.a, part, false);
  CHECK(mixed.text.empty());
  mixed.says(mixed.a, part, false);
  CHECK(mixed.text == part + part);
  mixed.says(mixed.b, "other\n");
  mixed.says(mixed.a, "end\n", false);
  CHECK(mixed.text == part + part + "end\nother\n");
}

TEST_CASE("line_mixer: what a source that ends has left is written", "[launch]") {
  Mixed mixed;
  SECTION("it had the turn") {
    mixed.says(mixed.a, "tail", false);
    mixed.mixer.close_source(mixed.a, mixed.now);
    mixed.says(mixed.b, "b\n");
    CHECK(mixed.text == "tailb\n");  // no byte is added
  }
  SECTION("it waited") {
    mixed.says(mixed.b, "b");
    mixed.says(mixed.a, "tail");
    mixed.mixer.close_source(mixed.a, mixed.now);
    mixed.says(mixed.b, "\n");
    CHECK(mixed.text == "b\ntail");
  }
}

TEST_CASE("line_mixer: acc's own lines begin on a line of their own", "[launch]") {
  Mixed mixed;
  mixed.mixer.announce("acc: one\n", mixed.now);
  mixed.says(mixed.a, "half");
  mixed.says(mixed.b, "b\n");
  mixed.mixer.announce("acc: two\n", mixed.now);
  CHECK(mixed.text == "acc: one\nhalf\nacc: two\nb\n");
}

TEST_CASE("line_mixer: flush waits for nobody", "[launch]") {
  Mixed mixed;
  mixed.says(mixed.a, "a");
  mixed.says(mixed.b, "b");
  mixed.says(mixed.c, "c");
  mixed.mixer.flush(mixed.now);
  CHECK(mixed.text == "abc");
}
