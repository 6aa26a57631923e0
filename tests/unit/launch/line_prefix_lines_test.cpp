// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/line_prefix.hpp"
#include "acc/launch/relay.hpp"
#include "support/catch.hpp"
#include "support/read_all.hpp"

namespace line_prefix_lines_test {

using acc::launcher::LinePrefixer;

TEST_CASE("line_prefixer: each line has the prefix, in pieces of any size", "[launch]") {
  LinePrefixer lines("[default0]:");
  CHECK(lines.feed("one\ntw") == "[default0]:one\n");
  CHECK(lines.feed("o") == "");
  CHECK(lines.feed("\n\n") == "[default0]:two\n[default0]:\n");
  CHECK(lines.finish() == "");
}

TEST_CASE("line_prefixer: a carriage return, or one with a newline, ends a line", "[launch]") {
  LinePrefixer lines(">");
  CHECK(lines.feed("10%\r20%\r") == ">10%\n>20%\n");
  CHECK(lines.feed("\ndone\r\n") == ">done\n");
}

TEST_CASE("line_prefixer: the last line gets its newline", "[launch]") {
  LinePrefixer lines(">");
  CHECK(lines.feed("tail") == "");
  CHECK(lines.finish() == ">tail\n");
  CHECK(lines.finish() == "");
}

TEST_CASE("line_prefixer: an unfinished line can be shown, and its rest is another line", "[launch]") {
  LinePrefixer lines(">");
  CHECK(lines.feed("one\nCompiling...") == ">one\n");
  CHECK(lines.has_unfinished());
  CHECK(lines.show_unfinished() == ">Compiling...\n");
  CHECK_FALSE(lines.has_unfinished());
  CHECK(lines.show_unfinished() == "");
  CHECK(lines.feed(" done\n") == "> done\n");
  // Nothing is left of a line that ends where it was shown.
  lines.feed("name? ");
  CHECK(lines.show_unfinished() == ">name? \n");
  CHECK(lines.feed("\nnext\n") == ">next\n");
  lines.feed("last");
  CHECK(lines.show_unfinished() == ">last\n");
  CHECK(lines.finish() == "");
}

TEST_CASE("line_prefixer: the copy gets whole lines, shown in parts or not", "[launch]") {
  acc::launcher::Channel pipe = acc::launcher::make_pipe();
  const auto copy = std::make_shared<acc::launcher::FilteredLog>(
      std::move(pipe.workers), std::vector<std::string>{"two three"}, [](const std::string&) {});
  LinePrefixer lines(">", {.copy = copy});
  lines.feed("two ");
  lines.show_unfinished();
  lines.feed("three\n");
  CHECK(acc::test::read_all(pipe.ours.get()) == ">two three\n");
}

TEST_CASE("line_prefixer: the time of a line is that of its end, and the copy gets what is shown",
          "[launch]") {
  acc::launcher::Channel pipe = acc::launcher::make_pipe();
  const auto copy = std::make_shared<acc::launcher::FilteredLog>(
      std::move(pipe.workers), std::vector<std::string>{"two"}, [](const std::string&) {});
  int moment = 0;
  LinePrefixer lines(">", {.stamp = [&] { return std::to_string(++moment) + " "; }, .copy = copy});
  CHECK(lines.feed("one\ntw") == "1 >one\n");
  CHECK(lines.feed("o\n") == "2 >two\n");
  CHECK(acc::test::read_all(pipe.ours.get()) == "2 >two\n");
}

TEST_CASE("line_prefixer: an endless line is shown in pieces, in bounded memory", "[launch]") {
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  LinePrefixer lines("> ");
  const std::string chunk(60'000, 'x');
  std::size_t shown = 0;
  for (std::size_t fed = 0; fed < 3 * kPiece; fed += chunk.size()) shown += lines.feed(chunk).size();
  CHECK(shown == 3 * (2 + kPiece + 1));
  CHECK(lines.finish().size() < kPiece);
  // A line of exactly the maximum is not split.
  CHECK(lines.feed(std::string(kPiece, 'x')).empty());
  CHECK(lines.feed("\nnext\n") == "> " + std::string(kPiece, 'x') + "\n> next\n");
}

}  // namespace line_prefix_lines_test
