// SPDX-License-Identifier: Apache-2.0
#include "acc/report/event_lines.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/event_log.hpp"
#include "support/temporary_folder.hpp"

namespace event_lines_test {

using namespace acc;
using namespace acc::launcher;

namespace {

EventLines read(const std::string& text) {
  EventLines lines;
  add_event_lines(lines, text, "a.jsonl");
  return lines;
}

}  // namespace

TEST_CASE("event_lines: a line that was cut, and what is no event, is named and passed over", "[report]") {
  const std::string whole = test::EventLogText().add(5, "attempt_started").text();
  const EventLines lines = read("[1,2]\n" + whole + "\n{\"foreign\":1}\n" + whole.substr(0, 50));
  REQUIRE(lines.lines.size() == 1);
  CHECK(lines.lines[0].event == "attempt_started");
  CHECK(lines.lines[0].time == 5);
  CHECK(lines.notes == std::vector<std::string>{"a.jsonl:1: is not an event; passed over",
                                                "a.jsonl:4: is not an event; passed over",
                                                "a.jsonl:5: is not an event; passed over"});
}

TEST_CASE("event_lines: of many lines that are no events the first are named", "[report]") {
  const EventLines lines = read("a\nb\nc\nd\ne\n\n");
  REQUIRE(lines.notes.size() == 4);
  CHECK(lines.notes[3] == "a.jsonl: 2 more lines are not events");
}

TEST_CASE("event_lines: events of a later acc are read, those of another schema are not", "[report]") {
  CHECK(parse_event_line(R"({"schema":1,"event":"teleported","time_ns":7,"beam":[]})"));
  CHECK_FALSE(parse_event_line(R"({"schema":2,"event":"finished","time_ns":7})"));
}

TEST_CASE("event_lines: numbers that are too large for what they count are none", "[report]") {
  CHECK_FALSE(parse_event_line(R"({"schema":1,"event":"finished","time_ns":99999999999999999999})"));
  CHECK_FALSE(parse_event_line(R"({"schema":1,"event":"finished","time_ns":-7})"));
  CHECK_FALSE(parse_event_line(R"({"schema":1,"event":"finished","time_ns":1e999})"));
  const auto line = parse_event_line(
      R"({"schema":1,"event":"progress","time_ns":7,"attempt":99999999999,)"
      R"("ranks":[-1,4294967296,1e300,"0",3],"steps":[1,1,1,1,1e300],"memory_bytes":[0,0,0,0,1e300]})");
  REQUIRE(line);
  CHECK(line->attempt == 0);
  REQUIRE(line->samples.size() == 1);
  CHECK(line->samples[0].first == 3);
  CHECK_FALSE(line->samples[0].second.steps);
}

TEST_CASE("event_lines: of GPUs what cannot be is not known", "[report]") {
  const auto line = parse_event_line(
      R"({"schema":1,"event":"gpu_use","time_ns":7,"gpus":[-1,4294967296,2],"use_percent":[1,1,101],)"
      R"("memory_bytes":[0,0,-1],"watts":[0,0,250.5],"joules":"many"})");
  REQUIRE(line);
  REQUIRE(line->gpus.size() == 1);
  CHECK(line->gpus[0].index == 2);
  CHECK_FALSE(line->gpus[0].percent);
  CHECK_FALSE(line->gpus[0].memory_bytes);
  CHECK(line->gpus[0].watts == 250.5);
  CHECK_FALSE(line->gpus[0].joules);
}

TEST_CASE("event_lines: steps that no training takes are none", "[report]") {
  const auto line = parse_event_line(
      R"({"schema":1,"event":"progress","time_ns":7,"ranks":[0,1,2],"steps":[-1,9223372036854775807,3],)"
      R"("loss":[0,0,1e300]})");
  REQUIRE(line);
  CHECK_FALSE(line->samples.at(0).second.steps);
  CHECK_FALSE(line->samples.at(1).second.steps);
  CHECK(line->samples.at(2).second.steps == 3);
  // Too large for a float.
  CHECK(line->samples.at(2).second.loss == std::numeric_limits<float>::infinity());
}

TEST_CASE("event_lines: progress is taken apart by ranks", "[report]") {
  const auto line = parse_event_line(
      R"({"schema":1,"event":"progress","time_ns":10000000000,"ranks":[4,5],"steps":[8,null],)"
      R"("counts_over_restarts":[true,false],"since_step_seconds":[2.5,null],"loss":["nan",null],)"
      R"("spent_seconds":{"data":[1.5,null]},"cpu_seconds":[3,4],"memory_bytes":[5,null]})");
  REQUIRE(line);
  REQUIRE(line->samples.size() == 2);
  const RankSample& first = line->samples[0].second;
  CHECK(first.steps == 8);
  CHECK(first.counts_over_restarts);
  CHECK(first.step_ended == 7.5);
  CHECK(std::isnan(first.loss.value_or(0)));
  CHECK(first.spent[1] == 1.5F);
  CHECK(first.memory_bytes == 5);
  CHECK_FALSE(line->samples[1].second.steps);
  CHECK(line->samples[1].second.cpu_seconds == 4);
}

TEST_CASE("event_lines: a clock that was set back during a run is told, and order and durations stay",
          "[report]") {
  test::EventLogText log;
  log.add(1000, "attempt_started").progress(1010, 0, 0, 1, 2).progress(410, 0, 0, 2, 2).add(420, "finished");
  test::EventLogText other("node1", 1);  // whose clock was not set
  other.add(1000, "attempt_started").add(1000.5, "warning").add(1000.4, "warning").add(1020, "finished");
  EventLines lines;
  add_event_lines(lines, log.text() + other.text(), "a.jsonl");
  std::vector<double> times;
  for (const EventLine& line : lines.lines) times.push_back(line.time);
  CHECK(times == std::vector<double>{1000, 1010, 1010, 1020, 1000, 1000.5, 1000.4, 1020});
  CHECK(lines.lines[2].samples.at(0).second.step_ended == 1008);
  REQUIRE(lines.notes.size() == 1);
  CHECK(lines.notes[0].starts_with("a.jsonl:3: the clock of node0 was set back by 600.0 s or more"));
  // A later run is by the clock as it is then.
  add_event_lines(lines, test::EventLogText("node0", 0, "job8").add(430, "finished").text(), "b.jsonl");
  CHECK(lines.lines.back().time == 430);
}

TEST_CASE("event_lines: the time in sections between two samples, also of two programs", "[report]") {
  const auto spent = [](float other, float data) { return RankSample{.spent = {other, data}}; };
  const auto between = [](const RankSample& previous, const RankSample& sample) {
    const auto times = spent_between(previous, sample);
    return std::pair(times[0], times[1]);
  };
  CHECK(between(spent(10, 4), spent(12, 5)) == std::pair(2.0, 1.0));
  CHECK(between(spent(10, 4), spent(3, 7)) == std::pair(3.0, 7.0));
  // The clocks of two processes.
  CHECK(between(spent(10, 4), spent(9.5, 7)) == std::pair(0.0, 3.0));
}

TEST_CASE("event_lines: a file that cannot be read is named", "[report]") {
  const test::TemporaryFolder folder;
  folder.write("a.jsonl", test::EventLogText().add(5, "finished").text() + "x");
  const EventLines lines = read_event_logs({folder.path() / "a.jsonl"});
  CHECK(lines.lines.size() == 1);
  CHECK(lines.notes.size() == 1);
  CHECK_THROWS_WITH(read_event_logs({folder.path() / "none"}), Catch::Contains("No such file"));
  CHECK_THROWS_WITH(read_event_logs({folder.path()}), Catch::Contains("Is a directory"));
  CHECK_THROWS_WITH(read_event_logs({"/proc/self/mem"}),
                    Catch::Contains("cannot be read to its end: Input/output error"));
}

TEST_CASE("event_lines: an event that is nested a million times is none", "[report]") {
  constexpr std::size_t kDepth = 1'000'000;
  CHECK_FALSE(parse_event_line(R"({"schema":1,"event":"job_started","time_ns":7,"settings":{"a":{"value":)" +
                               std::string(kDepth, '[') + std::string(kDepth, ']') + "}}}"));
}

}  // namespace event_lines_test
