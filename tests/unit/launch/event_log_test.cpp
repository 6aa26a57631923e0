// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/event_log.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

using namespace acc;

TEST_CASE("event_log: adds to what is there", "[launch]") {
  const test::TemporaryFolder folder;
  const auto file = folder.write("events.jsonl", "old\n");
  EventLog(file, {}).write("new\n");
  CHECK(folder.read("events.jsonl") == "old\nnew\n");
}

TEST_CASE("event_log: a place that cannot be written is an error at once, a full disk is told once",
          "[launch]") {
  CHECK(test::error_of([] { EventLog("/no/such/folder/e", {}); }) ==
        "/no/such/folder/e: the event log cannot be written: No such file or directory (--event-log names "
        "another "
        "file)");
  std::vector<std::string> reasons;
  EventLog log("/dev/full", [&](const std::string& reason) { reasons.push_back(reason); });
  log.write("a\n");
  log.write("b\n");
  CHECK(reasons == std::vector<std::string>{"No space left on device"});
}
