// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/tracker.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace tracker_test {

namespace {

namespace fs = std::filesystem;
using acc::test::error_of;

// Records the calls that it gets.
class Told : public acc::Tracker {
 public:
  std::string name() const override { return "told"; }
  void start(const std::string& project, const acc::TrackedConfig& config) override {
    said += "start " + project + " " + std::to_string(config.size()) + "; ";
  }
  void log(const acc::TrackedValues& values, std::optional<std::int64_t> step) override {
    said += "log " + std::to_string(values.size()) + " " + std::to_string(step.value_or(-1)) + "; ";
  }
  void finish() override { said += "finish; "; }

  std::string said = {};
};

}  // namespace

TEST_CASE("trackers: the program's own tracker gets all calls, in order", "[runtime]") {
  const auto tracker = std::make_shared<Told>();
  acc::detail::Trackers trackers({tracker}, "", true);
  trackers.start("mnist", {{"lr", 0.1}});
  trackers.log({{"loss", 0.5}}, 3);
  trackers.get("told").log({}, {});
  trackers.start("again", {});
  trackers.finish();
  CHECK(tracker->said == "start mnist 1; log 1 3; log 0 -1; finish; start again 0; finish; ");
}

TEST_CASE("trackers: on other processes nothing is done, and no files are created", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto tracker = std::make_shared<Told>();
  acc::detail::Trackers trackers({"all", tracker}, folder.path(), false);
  trackers.start("mnist", {{"lr", 0.1}});
  trackers.log({{"loss", 0.5}}, 3);
  trackers.get("told").log({}, {});
  trackers.get("jsonl").log({}, {});
  trackers.finish();
  CHECK(tracker->said.empty());
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("trackers: names choose trackers, each once", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  acc::detail::Trackers trackers({"jsonl", "all", "tensorboard"}, folder.path(), true);
  trackers.start("mnist", {});
  trackers.log({{"loss", 0.5}}, 1);
  trackers.finish();
  const std::string lines = folder.read("mnist.jsonl");
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 2);
  CHECK(std::distance(fs::directory_iterator(folder.path() / "mnist"), {}) == 1);
}

TEST_CASE("trackers: invalid choices are refused on every process", "[runtime]") {
  const bool is_main = GENERATE(true, false);
  const auto trackers_of = [&](const std::vector<acc::TrackerChoice>& choices, const fs::path& folder) {
    return error_of([&] { acc::detail::Trackers(choices, folder, is_main); });
  };
  CHECK(trackers_of({"tensorbord"}, "/x") ==
        "log_with: 'tensorbord' is not a tracker (did you mean 'tensorboard'?)");
  CHECK(trackers_of({"wandb"}, "/x") ==
        "log_with: 'wandb' is not a tracker (use tensorboard, jsonl, csv, all or a Tracker of your own)");
  CHECK(trackers_of({"jsonl"}, "") ==
        "log_with: 'jsonl' needs a folder (set project_dir, or logging_dir of the project)");
  CHECK(trackers_of({std::make_shared<Told>(), std::make_shared<Told>()}, "") ==
        "log_with: two trackers have the name 'told'");
  acc::detail::Trackers trackers({std::make_shared<Told>()}, "", is_main);
  CHECK(error_of([&] { trackers.get("jsonl"); }) ==
        "get_tracker: 'jsonl' is not one of log_with's trackers: told");
  const std::string early =
      "log: the trackers have not been started (call init_trackers before the "
      "first log, and log before end_training)";
  CHECK(error_of([&] { trackers.log({}, 1); }) == early);
  trackers.start("mnist", {});
  trackers.log({}, 1);
  trackers.finish();
  CHECK(error_of([&] { trackers.log({}, 1); }) == early);
}

TEST_CASE("trackers: a program without trackers may still log", "[runtime]") {
  acc::detail::Trackers trackers({}, "", true);
  trackers.log({{"loss", 0.5}}, 1);
  trackers.get("tensorboard").log({}, 1);
  trackers.start("mnist", {});
  trackers.log({{"loss", 0.5}}, 1);
  trackers.finish();
}

}  // namespace tracker_test
