// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/json_reporter.hpp"

#include <nlohmann/json.hpp>

#include "acc/launch/reporters.hpp"
#include "support/catch.hpp"

using namespace acc;
using namespace acc::launcher;
using nlohmann::json;

TEST_CASE("json_reporter: lines carry the attempt and the node's rank that hold", "[launch]") {
  std::vector<json> lines;
  const auto before = std::chrono::system_clock::now();
  JsonReporter reporter("job7", "node0", [&](std::string_view line) {
    REQUIRE(line.ends_with("}\n"));
    lines.push_back(json::parse(line));
  });
  reporter.report(Warning{"early"});
  reporter.report(AttemptStarted{2, {.machine_rank = 1}});
  reporter.report(WorkerStarted{});
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["attempt"] == 0);
  CHECK(lines[2]["attempt"] == 2);
  CHECK(lines[2]["node_rank"] == 1);
  CHECK(lines[2]["run_id"] == "job7");
  CHECK(lines[0]["time_ns"] >= std::chrono::nanoseconds(before.time_since_epoch()).count());
  CHECK(lines[2]["time_ns"] >= lines[0]["time_ns"]);
}

TEST_CASE("reporters: each reader gets each event", "[launch]") {
  std::string seen;
  Reporters readers;
  readers.report(Warning{"nobody"});
  for (const auto* name : {"a", "b"}) {
    readers.add(std::make_unique<JsonReporter>("", "", [&seen, name](std::string_view) { seen += name; }));
  }
  readers.report(Warning{"x"});
  readers.report(Warning{"y"});
  CHECK(seen == "abab");
}
