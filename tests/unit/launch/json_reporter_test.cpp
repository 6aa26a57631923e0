// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/json_reporter.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "acc/base/files.hpp"
#include "acc/launch/reporter.hpp"
#include "support/catch.hpp"
#include "support/json_schema.hpp"

namespace json_reporter_test {

using namespace acc;
using namespace acc::launcher;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

const EventContext kContext = {.run_id = "job7",
                               .host = "node0",
                               .node_rank = 2,
                               .attempt = 1,
                               .time = std::chrono::system_clock::time_point(1'700'000'000s + 5ns)};

json line_of(const Event& event) {
  return json::parse(event_json(event, kContext));
}

WorkerFailure failure() {
  return {.rank = 3,
          .local_rank = 1,
          .pid = 12,
          .host = "node0",
          .status = Signaled{SIGSEGV},
          .xids = std::vector<Xid>{{79, "0000:3b:00"}},
          .error_file = ErrorFile{.path = "/e.json", .message = "ValueError"},
          .stderr_tail = "bad \xff byte"};
}

// A rank that says how far it is, one that says nothing, and one that has ended.
ProgressNoted progress() {
  Progress page = {.steps = 8, .step_ended = 3s, .step_duration = 1234567us, .section_began = 4s};
  page.loss = std::numeric_limits<double>::quiet_NaN();
  page.section = acc::Section::data;
  page.spent[1] = 2s;
  return {{{.rank = 4, .progress = view_of(page, 5s), .cpu_time = 1500ms, .memory_bytes = 77},
           {.rank = 5, .cpu_time = 0ms, .memory_bytes = 0},
           {.rank = 6, .progress = view_of({}, 0s), .counts_over_restarts = true}}};
}

GpuUseNoted gpu_use() {
  const GpuUse busy = {.percent = 97, .memory_bytes = 77, .watts = 123.5, .joules = 5e6, .uuid = "GPU-7"};
  return {{{.use = busy, .ranks = {4, 5}}, {.use = {.index = 3}}}};
}

}  // namespace

TEST_CASE("event_json: progress is a table by columns, in milliseconds", "[launch]") {
  const json line = line_of(progress());
  CHECK(line["ranks"] == json({4, 5, 6}));
  CHECK(line["steps"] == json({8, nullptr, 0}));
  CHECK(line["counts_over_restarts"] == json({false, false, true}));
  CHECK(line["step_seconds"] == json({1.235, nullptr, nullptr}));
  CHECK(line["since_step_seconds"] == json({2.0, nullptr, nullptr}));
  CHECK(line["loss"] == json({"nan", nullptr, nullptr}));
  CHECK(line["section"] == json({"data", nullptr, "other"}));
  CHECK(line["spent_seconds"]["data"] == json({3.0, nullptr, 0.0}));
  CHECK(line["cpu_seconds"] == json({1.5, 0.0, nullptr}));
  CHECK(line["memory_bytes"] == json({77, 0, nullptr}));
}

TEST_CASE("event_json: the use of GPUs is a table by columns", "[launch]") {
  const json line = line_of(gpu_use());
  CHECK(line["gpus"] == json({0, 3}));
  CHECK(line["uuids"] == json({"GPU-7", ""}));
  CHECK(line["ranks"] == json::parse("[[4, 5], []]"));
  CHECK(line["use_percent"] == json({97, nullptr}));
  CHECK(line["memory_bytes"] == json({77, nullptr}));
  CHECK(line["watts"] == json({123.5, nullptr}));
  CHECK(line["joules"] == json({5e6, nullptr}));
}

TEST_CASE("event_json: every event has the form that the schema promises", "[launch]") {
  const test::JsonSchema schema(json::parse(read_file(ACC_SAMPLE_CONFIGS "/events.schema.json")));
  const std::vector<Event> events = {
      JobStarted{{"train.py", "--token", "***"}, 2, {{"num_processes", {2, "--num_processes"}}}},
      progress(),
      gpu_use(),
      AttemptStarted{1, {.num_machines = 2, .master_port = 4321}},
      WorkerStarted{3, 1, 12},
      WorkerFinished{3, 1, 12, Exited{0}},
      WorkerFinished{3, 1, 12, Signaled{SIGKILL}},
      Stopping{SIGTERM, 2, 1500ms},
      SignalPassedOn{SIGUSR1, "", {0}, {1}},
      Killed{{1, 2}, 30s, true},
      Suspended{},
      Resumed{},
      Restarting{failure(), 1, 3},
      HangFound{60s, "rank 0: asleep\n", OnHang::kill},
      HangStacksFound{"#0 wait\n"},
      StragglerFound{.rank = 5, .slow = {.section = acc::Section::data, .spent = 31ms, .reference = 26ms}},
      StragglerFound{.rank = 0, .other = 1, .slow = {.section = acc::Section::other}, .host = "node1"},
      PreflightFinished{{.json = R"({"schema":1,"passed":true})"}},
      PreflightFinished{{.passed = false}},
      StateFlushed{{.folder = "/runs/checkpoint-9", .damaged = {"snapshot_12: is missing"}}},
      StateFlushed{{.problem = "no space"}},
      StateFlushing{},
      Warning{"a full disk"},
      Failed{"no such host", 75},
      Finished{},
      Finished{{.exit_code = 139, .first_failure = failure(), .stop_signal = SIGINT}}};
  for (const Event& event : events) CHECK(schema.violation(line_of(event)).empty());
  CHECK_FALSE(schema.violation(json::parse(R"({"schema": 1, "event": "warning"})")).empty());
}

namespace {

// The fields in the table's row of an event, in quotes and in order of the alphabet; empty: there is no such
// row.
std::string documented_fields(const std::string& page, const std::string& event) {
  const std::size_t begin = page.find("\n| `" + event + "` | ");
  if (begin == std::string::npos) return {};
  const std::string row = page.substr(begin + 1, page.find('\n', begin + 1) - begin - 1);
  const std::size_t cell = row.rfind(" | ", row.size() - 2);
  std::set<std::string> fields;
  std::istringstream in(row.substr(cell));
  for (std::string word; in >> word;)
    if (word.starts_with('`')) fields.insert(word.substr(1, word.rfind('`') - 1));
  return fmt::format("{}", fields);
}

std::string fields_of(const json& event, const json& common) {
  std::set<std::string> fields;
  for (const auto& [name, value] : event["properties"].items())
    if (!common.contains(name)) fields.insert(name);
  return fmt::format("{}", fields);
}

}  // namespace

TEST_CASE("event_json: the reference has every event and its fields", "[launch]") {
  const json schema = json::parse(read_file(ACC_SAMPLE_CONFIGS "/events.schema.json"));
  const std::string page = read_file(ACC_TEST_DATA "/../../apps/docs/reference.md");
  const auto is_suspended = [](const json& event) {
    return event["properties"]["event"]["const"] == "suspended";
  };
  const json common = (*std::ranges::find_if(schema["oneOf"], is_suspended))["properties"];
  for (const json& event : schema["oneOf"]) {
    const std::string name = event["properties"]["event"]["const"];
    INFO(name);
    CHECK(documented_fields(page, name) == fields_of(event, common));
  }
}

TEST_CASE("event_json: a signal that is passed on names the node that received it", "[launch]") {
  CHECK(line_of(SignalPassedOn{.signal = SIGUSR1})["from"] == "node0");
  CHECK(line_of(SignalPassedOn{.signal = SIGUSR1, .host = "node1"})["from"] == "node1");
}

TEST_CASE("event_json: a line has time, job and node, then the event", "[launch]") {
  CHECK(
      event_json(WorkerFinished{3, 1, 12, Exited{5}}, kContext) ==
      R"({"schema":1,"event":"worker_finished","time_ns":1700000000000000005,"run_id":"job7","host":"node0",)"
      R"("node_rank":2,"attempt":1,"rank":3,"local_rank":1,"pid":12,"exit_code":5,"signal":null})");
}

TEST_CASE("event_json: the cause of a failure is complete, and valid UTF-8", "[launch]") {
  const json cause = line_of(Restarting{failure(), 1, 3})["cause"];
  CHECK(cause["signal"] == "SIGSEGV");
  CHECK(cause["exit_code"].is_null());
  CHECK(cause["message"] == "ValueError");
  CHECK(cause["last_words"] == "bad \xef\xbf\xbd byte");
  CHECK(line_of(Finished{})["cause"].is_null());
}

TEST_CASE("json_reporter: lines have the current attempt and node rank", "[launch]") {
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

}  // namespace json_reporter_test
