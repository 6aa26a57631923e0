// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/file_trackers.hpp"

#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "acc/runtime/tracking/appended_file.hpp"
#include "acc/runtime/tracking/event_file.hpp"
#include "event_records.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"
#include "support/temporary_folder.hpp"

namespace file_trackers_test {

namespace {

// The lines without their times; checks that the times are recent.
std::vector<std::string> lines_without_time(const std::string& text, double began) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    nlohmann::ordered_json object = nlohmann::ordered_json::parse(line);
    const double time = object.at("time").get<double>();
    CHECK((time >= began && time <= acc::detail::seconds_since_1970()));
    object.erase("time");
    lines.push_back(object.dump());
  }
  return lines;
}

}  // namespace

TEST_CASE("JSON lines: one object for the start and one for each log, with all types of values",
          "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const double began = acc::detail::seconds_since_1970();
  acc::JsonLinesTracker tracker(folder.path());
  tracker.start("mnist", {{"lr", 1e-5}, {"batch", 8}, {"net", "cnn"}, {"amp", true}});
  tracker.log({{"loss", 0.5F}, {"seen", std::size_t{3}}, {"note", "a \"b\"\n"}}, 1);
  tracker.log({{"accuracy", acc::TrackedGroup{{"train", 0.75}, {"test", 0.5}}}}, std::nullopt);
  tracker.log({{"loss", std::numeric_limits<double>::quiet_NaN()}, {"text", "\xff"}}, 2);
  CHECK(lines_without_time(folder.read("mnist.jsonl"), began) ==
        std::vector<std::string>{
            R"({"project":"mnist","config":{"amp":true,"batch":8,"lr":1e-05,"net":"cnn"}})",
            R"({"step":1,"values":{"loss":0.5,"note":"a \"b\"\n","seen":3}})",
            R"({"values":{"accuracy":{"test":0.5,"train":0.75}}})",
            "{\"step\":2,\"values\":{\"loss\":null,\"text\":\"\ufffd\"}}"});
}

TEST_CASE("JSON lines: a later training appends after the last complete line", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  folder.write("mnist.jsonl", "{\"step\":1,\"time\":1,\"values\":{}}\n{\"step\":2,\"ti");
  acc::JsonLinesTracker tracker(folder.path());
  tracker.start("mnist", {});
  tracker.log({}, 2);
  CHECK(lines_without_time(folder.read("mnist.jsonl"), 0) ==
        std::vector<std::string>{R"({"step":1,"values":{}})", R"({"project":"mnist","config":{}})",
                                 R"({"step":2,"values":{}})"});
}

namespace {

// The rows without their times; checks that there are times.
std::string rows_without_time(const std::string& text) {
  std::string rows;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find(',');
    const std::size_t second = std::min(line.find(',', first + 1), line.size());
    CHECK(second > first + 1);
    rows += line.substr(0, first) + line.substr(second) + "\n";
  }
  return rows;
}

}  // namespace

TEST_CASE("CSV: a row for each log, and a column for each name from its first log on", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  acc::CsvTracker tracker(folder.path());
  tracker.start("mnist", {{"lr", 0.5}});
  tracker.log({{"loss", 0.5}, {"note", "a, \"b\"\nc"}}, 1);
  tracker.log({{"loss", 0.25}, {"f1", acc::TrackedGroup{{"cats", 0.1}}}}, std::nullopt);
  CHECK(rows_without_time(folder.read("mnist.csv")) ==
        "step,loss,note,f1/cats\n"
        "1,0.5,\"a, \"\"b\"\" c\"\n"
        ",0.25,,0.1\n");
  CHECK(folder.read("mnist.hparams.yml") == "\"lr\": 0.5\n");
}

TEST_CASE("CSV: a metric with the name of one of the first columns has another column", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  acc::CsvTracker tracker(folder.path());
  tracker.start("mnist", {});
  tracker.log({{"time", 3.25}, {"step", 7.0}}, 1);
  CHECK(rows_without_time(folder.read("mnist.csv")) == "step,values/step,values/time\n1,7,3.25\n");
}

TEST_CASE("CSV: a later training appends after the last complete line, with the file's columns",
          "[runtime]") {
  const acc::test::TemporaryFolder folder;
  folder.write("mnist.csv", "step,time,\"a,b\"\n1,9,2\n2,9");
  acc::CsvTracker tracker(folder.path());
  tracker.start("mnist", {});
  tracker.log({{"a,b", 3}, {"loss", true}}, 2);
  CHECK(rows_without_time(folder.read("mnist.csv")) == "step,\"a,b\",loss\n1,2\n2,3,true\n");
}

TEST_CASE("CSV: a header without a newline is completed, and one of Windows is read", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  folder.write("cut.csv", "step,time,loss");
  folder.write("windows.csv", "step,time,loss\r\n1,9,2\r\n");
  for (const char* project : {"cut", "windows"}) {
    acc::CsvTracker tracker(folder.path());
    tracker.start(project, {});
    tracker.log({{"loss", 3}}, 2);
  }
  CHECK(rows_without_time(folder.read("cut.csv")) == "step,loss\n2,3\n");
  CHECK(rows_without_time(folder.read("windows.csv")) == "step,loss\r\n1,2\r\n2,3\n");
}

TEST_CASE("CSV: a column that could not be added is added by the next log", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  CHECK(acc::test::in_child([&] {
          acc::CsvTracker tracker(folder.path());
          tracker.start("mnist", {});
          tracker.log({{"loss", 1}}, 1);
          std::signal(SIGXFSZ, SIG_IGN);
          const rlimit full{.rlim_cur = 20, .rlim_max = RLIM_INFINITY};
          ::setrlimit(RLIMIT_FSIZE, &full);
          const std::string error = acc::test::error_of([&] { tracker.log({{"loss", 2}, {"f1", 1}}, 2); });
          const rlimit free{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
          ::setrlimit(RLIMIT_FSIZE, &free);
          tracker.log({{"loss", 3}, {"f1", 2}}, 3);
          return error.ends_with("cannot be written: File too large") ? 0 : 1;
        }) == 0);
  CHECK(rows_without_time(folder.read("mnist.csv")) == "step,loss,f1\n1,1\n3,3,2\n");
}

TEST_CASE("CSV: the rows of two trainings at a time are those of their columns", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  acc::CsvTracker first(folder.path());
  acc::CsvTracker second(folder.path());
  first.start("mnist", {});
  second.start("mnist", {});
  first.log({{"loss", 1}}, 1);
  second.log({{"accuracy", 2}}, 1);
  first.log({{"loss", 3}}, 2);
  second.log({{"accuracy", 4}}, 2);
  CHECK(rows_without_time(folder.read("mnist.csv")) == "step,loss,accuracy\n1,1\n1,,2\n2,3,\n2,,4\n");
  std::filesystem::remove(folder.path() / "mnist.csv");
  first.log({{"loss", 5}}, 3);
  CHECK(rows_without_time(folder.read("mnist.csv")) == "step,loss\n3,5\n");
}

TEST_CASE("CSV: another file is not changed", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("mnist.csv", "name,price\napple,1\n");
  acc::CsvTracker tracker(folder.path());
  CHECK(acc::test::error_of([&] { tracker.start("mnist", {}); }) ==
        file.string() +
            ": is not a file of this tracker: its first columns are not step and time (move the file away, "
            "or choose another name for the project)");
  CHECK(folder.read("mnist.csv") == "name,price\napple,1\n");
}

namespace {

namespace fs = std::filesystem;

// The events after the version in the only file in the folder.
std::vector<std::string> events_in(const fs::path& folder) {
  const std::vector<fs::path> files = acc::test::event_files(folder);
  REQUIRE(files.size() == 1);
  std::vector<std::string> events = acc::test::event_records(files.front());
  events.erase(events.begin());
  return events;
}

// The time of an event: its first field.
double time_of(const std::string& event) {
  double seconds = 0;
  std::memcpy(&seconds, event.data() + 1, sizeof seconds);
  return seconds;
}

}  // namespace

TEST_CASE(
    "tensorboard: numbers and texts are in the project's folder, each name of a group in its own folder",
    "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const fs::path project = folder.path() / "mnist";
  acc::TensorBoardTracker tracker(folder.path());
  tracker.start("mnist", {});
  tracker.log({{"loss", 0.5}, {"note", "hello"}, {"eval/f1", acc::TrackedGroup{{"a", 1}, {"b", 2}}}}, 7);
  tracker.log({{"eval/f1", acc::TrackedGroup{{"a", 3}}}}, 8);

  const std::vector<std::string> events = events_in(project);
  REQUIRE(events.size() == 2);
  const acc::detail::EventTime time{time_of(events.at(0)), 7};
  CHECK(events.at(0) == acc::detail::value_event(time, "loss", 0.5));
  CHECK(events.at(1) == acc::detail::value_event(time, "note", "hello"));
  const std::vector<std::string> a = events_in(project / "eval_f1_a");
  REQUIRE(a.size() == 2);
  CHECK(a.at(0) == acc::detail::value_event(time, "eval/f1", 1));
  CHECK(a.at(1) == acc::detail::value_event({time_of(a.at(1)), 8}, "eval/f1", 3));
  CHECK(events_in(project / "eval_f1_b") == std::vector{acc::detail::value_event(time, "eval/f1", 2)});
}

TEST_CASE("tensorboard: the config is in a folder named after the time, as events and as YAML", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const acc::TrackedConfig config{{"lr", 0.1}, {"net", "cnn"}};
  acc::TensorBoardTracker tracker(folder.path());
  tracker.start("mnist", config);
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder.path() / "mnist")) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  REQUIRE(folders.size() == 1);
  const std::vector<std::string> events = events_in(folders.front());
  REQUIRE(events.size() == 3);
  CHECK(events == acc::detail::hyper_parameter_events(time_of(events.at(0)), config));
  CHECK(std::stod(folders.front().filename()) == Approx(time_of(events.at(0))).epsilon(0).margin(1e-5));
  CHECK(acc::read_file(folders.front() / "hparams.yml") == acc::detail::to_yaml(config));
}

TEST_CASE("tensorboard: a training that starts again writes a new file", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  acc::TensorBoardTracker tracker(folder.path());
  tracker.start("mnist", {});
  tracker.finish();
  tracker.start("mnist", {});
  CHECK(acc::test::event_files(folder.path() / "mnist").size() == 2);
}

TEST_CASE("tensorboard: YAML distinguishes numbers and text", "[runtime]") {
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK(acc::detail::to_yaml(
            {{"a", 1e-5}, {"b", 3.0}, {"c", 0.1}, {"d", 1e22}, {"e", -infinite}, {"f", true}}) ==
        "\"a\": 1.0e-05\n\"b\": 3.0\n\"c\": 0.1\n\"d\": 1.0e+22\n\"e\": -.inf\n\"f\": true\n");
  CHECK(acc::detail::to_yaml({{"a: b", "no"}, {"c", 7}, {"d", "1\n\"2\""}}) ==
        "\"a: b\": \"no\"\n\"c\": 7\n\"d\": \"1\\n\\\"2\\\"\"\n");
}

}  // namespace file_trackers_test
