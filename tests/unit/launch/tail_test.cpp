// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/tail.hpp"

#include <string>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using acc::launcher::Tail;

namespace {

std::string numbered(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

}  // namespace

TEST_CASE("tail: keeps the last 30 lines", "[launch]") {
  Tail tail;
  CHECK(tail.lines().empty());
  tail.append(numbered(1, 30));
  CHECK(tail.lines() == numbered(1, 30));
  tail.append(numbered(31, 40));
  CHECK(tail.lines() == numbered(11, 40));
  tail.append("rest");
  CHECK(tail.lines() == numbered(12, 40) + "rest");
}

TEST_CASE("tail: keeps 16 KiB at most, and no part of a line that was cut", "[launch]") {
  Tail tail;
  for (int i = 0; i < 1000; ++i) tail.append(std::string(999, 'x') + "\n");
  CHECK(tail.lines().size() == 16000);
}

TEST_CASE("tail: of one endless line the end", "[launch]") {
  Tail tail;
  tail.append(std::string(100'000, 'x') + "end");
  CHECK(tail.lines().size() == Tail::kMostBytes);
  CHECK(tail.lines().ends_with("xend"));
}

TEST_CASE("tail: of a file its last lines", "[launch]") {
  const acc::test::TemporaryFolder folder;
  CHECK(acc::launcher::tail_of_file(folder.path() / "none").empty());
  CHECK(acc::launcher::tail_of_file(folder.write("short", "a\nb")) == "a\nb");
  const std::string lines = numbered(1, 5000);
  CHECK(acc::launcher::tail_of_file(folder.write("long", lines)) == numbered(4971, 5000));
  const std::string exact = std::string(999, 'x') + "\n";
  std::string wide;
  for (int i = 0; i < 20; ++i) wide += exact;
  CHECK(acc::launcher::tail_of_file(folder.write("wide", wide)).size() == 16000);
}

TEST_CASE("tail: neither LibTorch's frames nor warnings at the end push the error out", "[launch]") {
  Tail tail;
  tail.append("RuntimeError: boom\nException raised from f at g.cpp:1 (most recent call first):\n");
  for (int i = 0; i < 18; ++i)
    tail.append("frame #" + std::to_string(i) + ": " + std::string(1000, 'f') +
                " (0x7f in libtorch_cpu.so)\n");
  for (int i = 0; i < 30; ++i) tail.append("t.py:1: UserWarning: leaked\n  warnings.warn('leaked')\n");
  CHECK(tail.lines() == "RuntimeError: boom\n");
}
