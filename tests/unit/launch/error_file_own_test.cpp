// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/error_file.hpp"
#include "acc/launch/launch_report.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace error_file_own_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("own_error_file: the worker's exit code is added inside its message", "[launch]") {
  const std::string text = R"({"message":{"message":"no","extraInfo":{"timestamp":"1"}}})";
  CHECK(with_error_code(text, Exited{3}) ==
        R"({"message":{"message":"no","extraInfo":{"timestamp":"1"},"errorCode":3}})");
  CHECK(with_error_code(text, Signaled{9}) ==
        R"({"message":{"message":"no","extraInfo":{"timestamp":"1"},"errorCode":-9}})");
}

TEST_CASE("own_error_file: other text is written unchanged", "[launch]") {
  for (const auto* text : {R"({"message": "no"})", "half {", "[]"})
    CHECK(with_error_code(text, Exited{1}) == text);
}

TEST_CASE("own_error_file: an error of the launcher has torch's form", "[launch]") {
  const auto time = std::chrono::system_clock::time_point(std::chrono::seconds(12));
  const std::string text = to_error_json("no room", "", time);
  CHECK(parse_error_file(text) == ErrorFile{.message = "no room", .time = time});
  CHECK(text.find("py_callstack") ==
        std::string::npos);  // torchrun shows it, even when empty, in place of the message
}

TEST_CASE("own_error_file: replaces the file only if the worker has written one", "[launch]") {
  const test::TemporaryFolder folder;
  const auto file = folder.write("agent.json", "old");
  WorkerFailure failure = {.status = Exited{5}};
  leave_error_file(file, failure);
  CHECK(folder.read("agent.json") == "old");
  failure.error_file = ErrorFile{.path = folder.write("error.json", R"({"message":{"message":"no"}})")};
  leave_error_file(file, failure);
  CHECK(folder.read("agent.json") == R"({"message":{"message":"no","errorCode":5}})");
  leave_error_file("", failure);
  failure.error_file =
      ErrorFile{.path = "/on/another/node/error.json", .message = "far", .traceback = "Traceback"};
  leave_error_file(file, failure);
  const ErrorFile written = parse_error_file(folder.read("agent.json"));
  CHECK(written.message == "far");
  CHECK(written.traceback == "Traceback");
}

}  // namespace error_file_own_test
