// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/error_file.hpp"

#include <sys/stat.h>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace error_file_test {

using namespace acc;
using namespace acc::launcher;
using std::chrono::seconds;
using std::chrono::system_clock;

TEST_CASE("error_file: torch's record of an exception", "[launch]") {
  const ErrorFile file = parse_error_file(
      R"({"message": {"message": "ValueError: no",
          "extraInfo": {"py_callstack": "Traceback\n", "timestamp": "1700000000"}}})");
  CHECK(file.valid);
  CHECK(file.message == "ValueError: no");
  CHECK(file.traceback == "Traceback\n");
  REQUIRE(file.time);
  CHECK(*file.time == system_clock::time_point(seconds(1700000000)));
}

TEST_CASE("error_file: libacc adds the exact time, and whether the loss of a peer was the cause",
          "[launch]") {
  const ErrorFile file = parse_error_file(
      R"({"message": {"message": "no", "extraInfo": {"py_callstack": "", "timestamp": "1700000000",
          "timestamp_us": "1700000000123456", "consequence": true, "lost_ranks": [1, 3, -1, "2"]}}})");
  CHECK(file.time == system_clock::time_point(std::chrono::microseconds(1700000000123456)));
  CHECK(file.exact);
  CHECK(file.consequence);
  CHECK(file.lost_ranks == std::vector<int>{1, 3});
  const ErrorFile odd = parse_error_file(
      R"({"message": {"message": "no", "extraInfo": {"timestamp": "12", "timestamp_us": "-3", "consequence": 1}}})");
  CHECK(odd.time == system_clock::time_point(seconds(12)));
  CHECK_FALSE(odd.exact);
  CHECK_FALSE(odd.consequence);
  CHECK(odd.lost_ranks.empty());
}

TEST_CASE("error_file: a plain message, with or without a time", "[launch]") {
  CHECK(parse_error_file(R"({"message": "no"})").message == "no");
  CHECK_FALSE(parse_error_file(R"({"message": "no"})").time);
  CHECK(parse_error_file(R"({"message": "no", "timestamp": 12})").time ==
        system_clock::time_point(seconds(12)));
}

TEST_CASE("error_file: other text is shown unchanged", "[launch]") {
  const std::string text = GENERATE(as<std::string>{}, "half {", "[1, 2]", "{\"error\": 1}", "null");
  const ErrorFile file = parse_error_file(text);
  CHECK_FALSE(file.valid);
  CHECK(file.message == text);
}

TEST_CASE("error_file: unusual values are accepted", "[launch]") {
  CHECK(parse_error_file(R"({"message": {"message": 5}})").message == "5");
  CHECK(parse_error_file(R"({"message": {"extraInfo": []}})").message.empty());
  CHECK_FALSE(parse_error_file(R"({"message": "x", "timestamp": 1e300})").time);
  CHECK_FALSE(parse_error_file(R"({"message": "x", "timestamp": "soon"})").time);
}

TEST_CASE("error_file: a missing or empty file is absent", "[launch]") {
  const test::TemporaryFolder folder;
  CHECK_FALSE(read_error_file(folder.path() / "error.json"));
  CHECK_FALSE(read_error_file(folder.write("empty.json", "")));
  const auto file = read_error_file(folder.write("error.json", R"({"message": "no"})"));
  REQUIRE(file);
  CHECK(file->path == folder.path() / "error.json");
}

TEST_CASE("error_file: of a message of megabytes both ends are shown, with all that follows it", "[launch]") {
  const test::TemporaryFolder folder;
  const std::string message = "begin \\u00e4" + std::string(1'200'000, 'x') + "\\u00e4 end";
  const auto file = read_error_file(folder.write(
      "error.json", R"({"message": {"message": ")" + message +
                        R"(", "extraInfo": {"py_callstack": "line 7", "timestamp": "1700000000"}}})"));
  REQUIRE(file);
  CHECK(file->valid);
  CHECK(file->message.size() < 70'000);
  CHECK(file->message.starts_with("begin \xc3\xa4x"));
  CHECK(file->message.ends_with("x\xc3\xa4 end"));
  CHECK(file->message.find("\n... (1134478 bytes are left out)\nx") != std::string::npos);
  CHECK(file->traceback == "line 7");
  CHECK(file->time);
}

TEST_CASE("error_file: a long text without one whole character is cut, too", "[launch]") {
  const ErrorFile file = parse_error_file(std::string(200'000, '\x80'));
  CHECK_FALSE(file.valid);
  CHECK(file.message.size() < 70'000);
}

TEST_CASE("error_file: a pipe in its place is absent, without waiting", "[launch]") {
  const test::TemporaryFolder folder;
  const auto pipe = folder.path() / "error.json";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_FALSE(read_error_file(pipe).has_value());
}

TEST_CASE("error_file: one that is nested a million times is text like any other", "[launch]") {
  constexpr std::size_t kDepth = 1'000'000;
  const std::string text =
      R"({"message": {"message": )" + std::string(kDepth, '[') + std::string(kDepth, ']') + "}}";
  CHECK_FALSE(parse_error_file(text).valid);
  CHECK(with_error_code(text, Exited{1}) == text);
}

}  // namespace error_file_test
