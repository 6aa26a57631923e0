// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/line_mixer.hpp"

#include <string>

#include "support/catch.hpp"

namespace line_mixer_test {

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

  void writes(int source, std::string_view chunk, bool drained = true) {
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

TEST_CASE("line_mixer: whole lines and prompts are written at once", "[launch]") {
  Mixed mixed;
  mixed.writes(mixed.a, "one\ntwo\n");
  CHECK(mixed.text == "one\ntwo\n");
  mixed.writes(mixed.a, "name? ");
  CHECK(mixed.text == "one\ntwo\nname? ");
  CHECK_FALSE(mixed.mixer.deadline());
}

TEST_CASE("line_mixer: a line is not split by another source", "[launch]") {
  Mixed mixed;
  mixed.writes(mixed.a, "begin-");
  mixed.writes(mixed.b, "other\n");
  CHECK(mixed.text == "begin-");
  CHECK(mixed.mixer.waiting(mixed.b) == 6);
  mixed.writes(mixed.a, "end\n");
  CHECK(mixed.text == "begin-end\nother\n");
  CHECK(mixed.mixer.waiting(mixed.b) == 0);
}

TEST_CASE("line_mixer: waiting sources are served in order of arrival", "[launch]") {
  Mixed mixed;
  mixed.writes(mixed.a, "a");
  mixed.writes(mixed.c, "c1\n");
  mixed.writes(mixed.b, "b1\nb2");
  mixed.writes(mixed.c, "c2\n");
  mixed.writes(mixed.a, "\n");
  CHECK(mixed.text == "a\nc1\nc2\nb1\nb2");
}

TEST_CASE("line_mixer: a source that is silent within a line loses its turn, a progress bar sooner",
          "[launch]") {
  Mixed mixed;
  SECTION("a line that was cut off may still be coming") {
    mixed.writes(mixed.a, "begun");
    mixed.writes(mixed.b, "line\n");
    mixed.passes(1999ms);
    CHECK(mixed.text == "begun");
    mixed.passes(1ms);
    CHECK(mixed.text == "begunline\n");
  }
  SECTION("a progress bar has no end") {
    mixed.writes(mixed.a, "\r50%");
    mixed.writes(mixed.b, "line\n");
    mixed.passes(99ms);
    CHECK(mixed.text == "\r50%");
    mixed.passes(1ms);
    CHECK(mixed.text == "\r50%line\n");
  }
}

TEST_CASE("line_mixer: a progress bar delays others for a second at most", "[launch]") {
  Mixed mixed;
  mixed.writes(mixed.a, "\r0%");
  mixed.writes(mixed.b, "line\n");
  for (int i = 0; i < 25; ++i) {
    mixed.passes(50ms);
    mixed.writes(mixed.a, "\r1%");
  }
  CHECK(mixed.text.find("line\n") != std::string::npos);
}

TEST_CASE("line_mixer: a chunk that ends within a line delays no other source", "[launch]") {
  Mixed mixed;
  mixed.writes(mixed.a, "one\ntw", false);
  mixed.writes(mixed.b, "other\n");
  CHECK(mixed.text == "one\nother\n");
  mixed.writes(mixed.a, "o\nthree", false);
  CHECK(mixed.text == "one\nother\ntwo\n");
  mixed.writes(mixed.a, "", true);
  CHECK(mixed.text == "one\nother\ntwo\nthree");
}

TEST_CASE("line_mixer: others are served at the line ends of a source whose chunks never end with one",
          "[launch]") {
  Mixed mixed;
  mixed.writes(mixed.a, "a1\na");
  mixed.writes(mixed.b, "b1\nb");
  mixed.writes(mixed.a, "2\na");
  CHECK(mixed.text == "a1\na2\nb1\na");
  mixed.writes(mixed.a, "3\na");
  mixed.writes(mixed.b, "2\nb");
  CHECK(mixed.text == "a1\na2\nb1\na3\nb2\na");
}

TEST_CASE("line_mixer: a very long line is written as it arrives, and not split", "[launch]") {
  Mixed mixed;
  const std::string part(40 << 10, 'x');
  mixed.writes(mixed.a, part, false);
  CHECK(mixed.text.empty());
  mixed.writes(mixed.a, part, false);
  CHECK(mixed.text == part + part);
  mixed.writes(mixed.b, "other\n");
  mixed.writes(mixed.a, "end\n", false);
  CHECK(mixed.text == part + part + "end\nother\n");
}

TEST_CASE("line_mixer: a line without an end delays others for ten seconds, and then for one", "[launch]") {
  Mixed mixed;
  const std::string part(80 << 10, 'x');
  const auto waits_for = [&](std::chrono::milliseconds limit) {
    mixed.writes(mixed.a, part, false);
    mixed.writes(mixed.b, "line\n");
    for (auto passed = 0ms; passed < limit; passed += 50ms) {
      if (mixed.mixer.waiting(mixed.b) == 0) return passed;
      mixed.passes(50ms);
      mixed.writes(mixed.a, part, false);
    }
    return limit;
  };
  CHECK(waits_for(1h) == 10s);
  CHECK(waits_for(1h) == 1s);
  mixed.writes(mixed.a, "\n", false);
  CHECK(waits_for(1h) == 10s);
}

TEST_CASE("line_mixer: the rest of a closed source is written", "[launch]") {
  Mixed mixed;
  SECTION("it had the turn") {
    mixed.writes(mixed.a, "tail", false);
    mixed.mixer.close_source(mixed.a, mixed.now);
    mixed.writes(mixed.b, "b\n");
    CHECK(mixed.text == "tailb\n");  // no byte is added
  }
  SECTION("it waited") {
    mixed.writes(mixed.b, "b");
    mixed.writes(mixed.a, "tail");
    mixed.mixer.close_source(mixed.a, mixed.now);
    mixed.writes(mixed.b, "\n");
    CHECK(mixed.text == "b\ntail");
  }
}

TEST_CASE("line_mixer: acc's own lines begin on a new line", "[launch]") {
  Mixed mixed;
  mixed.mixer.announce("acc: one\n", mixed.now);
  mixed.writes(mixed.a, "half");
  mixed.writes(mixed.b, "b\n");
  mixed.mixer.announce("acc: two\n", mixed.now);
  CHECK(mixed.text == "acc: one\nhalf\nacc: two\nb\n");
}

TEST_CASE("line_mixer: flush() writes everything", "[launch]") {
  Mixed mixed;
  mixed.writes(mixed.a, "a");
  mixed.writes(mixed.b, "b");
  mixed.writes(mixed.c, "c");
  mixed.mixer.flush(mixed.now);
  CHECK(mixed.text == "abc");
}

}  // namespace line_mixer_test
