// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/tensorboard_tracker.hpp"

#include <cstring>
#include <limits>

#include "acc/runtime/tracking/summary_event.hpp"
#include "event_records.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;

// The events of the one file in the folder that come after the version.
std::vector<std::string> events_in(const fs::path& folder) {
  const std::vector<fs::path> files = acc::test::event_files(folder);
  REQUIRE(files.size() == 1);
  std::vector<std::string> events = acc::test::event_records(files.front());
  events.erase(events.begin());
  return events;
}

// The seconds of an event: its first field.
double time_of(const std::string& event) {
  double seconds = 0;
  std::memcpy(&seconds, event.data() + 1, sizeof seconds);
  return seconds;
}

}  // namespace

TEST_CASE("tensorboard: numbers and texts are in the project's folder, a group's in one for each",
          "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const fs::path project = folder.path() / "mnist";
  acc::TensorBoardTracker tracker(folder.path());
  tracker.start("mnist", {});
  tracker.log({{"loss", 0.5}, {"note", "hello"}, {"eval/f1", acc::TrackedGroup{{"a", 1}, {"b", 2}}}}, 7);
  tracker.log({{"eval/f1", acc::TrackedGroup{{"a", 3}}}}, 8);

  const std::vector<std::string> events = events_in(project);
  REQUIRE(events.size() == 2);
  const acc::EventTime time{time_of(events.at(0)), 7};
  CHECK(events.at(0) == acc::value_event(time, "loss", 0.5));
  CHECK(events.at(1) == acc::value_event(time, "note", "hello"));
  const std::vector<std::string> a = events_in(project / "eval_f1_a");
  REQUIRE(a.size() == 2);
  CHECK(a.at(0) == acc::value_event(time, "eval/f1", 1));
  CHECK(a.at(1) == acc::value_event({time_of(a.at(1)), 8}, "eval/f1", 3));
  CHECK(events_in(project / "eval_f1_b") == std::vector{acc::value_event(time, "eval/f1", 2)});
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
  CHECK(events == acc::hyper_parameter_events(time_of(events.at(0)), config));
  CHECK(std::stod(folders.front().filename()) == Approx(time_of(events.at(0))).epsilon(0).margin(1e-5));
  CHECK(acc::read_file(folders.front() / "hparams.yml") == acc::to_yaml(config));
}

TEST_CASE("tensorboard: a training that starts again has a file of its own", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  acc::TensorBoardTracker tracker(folder.path());
  tracker.start("mnist", {});
  tracker.finish();
  tracker.start("mnist", {});
  CHECK(acc::test::event_files(folder.path() / "mnist").size() == 2);
}

TEST_CASE("tensorboard: YAML keeps what is a number and what is text", "[runtime]") {
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK(acc::to_yaml({{"a", 1e-5}, {"b", 3.0}, {"c", 0.1}, {"d", 1e22}, {"e", -infinite}, {"f", true}}) ==
        "\"a\": 1.0e-05\n\"b\": 3.0\n\"c\": 0.1\n\"d\": 1.0e+22\n\"e\": -.inf\n\"f\": true\n");
  CHECK(acc::to_yaml({{"a: b", "no"}, {"c", 7}, {"d", "1\n\"2\""}}) ==
        "\"a: b\": \"no\"\n\"c\": 7\n\"d\": \"1\\n\\\"2\\\"\"\n");
}
