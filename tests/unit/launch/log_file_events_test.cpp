// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "acc/base/files.hpp"
#include "acc/launch/log_file.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace log_file_events_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("event_log: appends to an existing file", "[launch]") {
  const test::TemporaryFolder folder;
  const auto file = folder.write("events.jsonl", "old\n");
  EventLog(file, {}).write("new\n");
  CHECK(folder.read("events.jsonl") == "old\nnew\n");
}

TEST_CASE("event_log: an unwritable file is an error at once, a full disk is reported once", "[launch]") {
  CHECK(test::error_of([] { EventLog("/no/such/folder/e", {}); }) ==
        "/no/such/folder/e: the event log cannot be written: no such folder: /no/such/folder (give "
        "--event-log another file)");
  std::vector<std::string> reasons;
  EventLog log("/dev/full", [&](const std::string& reason) { reasons.push_back(reason); });
  log.write("a\n");
  log.write("b\n");
  CHECK(reasons == std::vector<std::string>{"No space left on device"});
}

TEST_CASE("event_log: a pipe with a reader is written, one without is refused", "[launch]") {
  const test::TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(test::error_of([&] { EventLog(pipe, {}); }).find("it is a pipe without a reader") !=
        std::string::npos);
  const Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EventLog(pipe, {}).write("line\n");
  std::array<char, 16> got = {};
  CHECK(::read(reader.get(), got.data(), got.size()) == 5);
}

}  // namespace log_file_events_test
