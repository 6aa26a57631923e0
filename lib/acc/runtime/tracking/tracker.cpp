// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/tracker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/tracking/file_trackers.hpp"

namespace acc::detail {
namespace {

// The tracker on processes that do not track.
class InertTracker : public Tracker {
 public:
  std::string name() const override { return {}; }
  void start(const std::string& /*project*/, const TrackedConfig& /*config*/) override {}
  void log(const TrackedValues& /*values*/, std::optional<std::int64_t> /*step*/) override {}
  void finish() override {}
};

std::vector<std::shared_ptr<Tracker>> named(const std::string& name,
                                            const std::filesystem::path& logging_dir) {
  std::vector<std::shared_ptr<Tracker>> trackers;
  if (name == "tensorboard" || name == "all")
    trackers.push_back(std::make_shared<TensorBoardTracker>(logging_dir));
  if (name == "jsonl" || name == "all") trackers.push_back(std::make_shared<JsonLinesTracker>(logging_dir));
  if (name == "csv" || name == "all") trackers.push_back(std::make_shared<CsvTracker>(logging_dir));
  if (trackers.empty()) {
    const std::string near = did_you_mean(name, {"tensorboard", "jsonl", "csv", "all"});
    throw Error({.what = fmt::format("'{}' is not a tracker", name),
                 .where = "log_with",
                 .hint = near.empty() ? "use tensorboard, jsonl, csv, all or a Tracker of your own" : near});
  }
  if (logging_dir.empty()) {
    throw Error({.what = fmt::format("'{}' needs a folder", name),
                 .where = "log_with",
                 .hint = "set project_dir, or logging_dir of the project"});
  }
  return trackers;
}

}  // namespace

Trackers::Trackers(const std::vector<TrackerChoice>& choices, const std::filesystem::path& logging_dir,
                   bool is_main_process)
    : is_main_process_(is_main_process) {
  for (const TrackerChoice& choice : choices) {
    if (const auto* tracker = std::get_if<std::shared_ptr<Tracker>>(&choice)) {
      if (find((*tracker)->name()) != nullptr) {
        throw Error({.what = fmt::format("two trackers have the name '{}'", (*tracker)->name()),
                     .where = "log_with"});
      }
      trackers_.push_back(*tracker);
      continue;
    }
    for (auto& tracker : named(std::get<std::string>(choice), logging_dir)) {
      // A tracker that is named and also part of "all" is added once.
      if (find(tracker->name()) == nullptr) trackers_.push_back(std::move(tracker));
    }
  }
}

Tracker* Trackers::find(std::string_view name) const {
  const auto found = std::ranges::find_if(trackers_, [&](const auto& one) { return one->name() == name; });
  return found == trackers_.end() ? nullptr : found->get();
}

void Trackers::start(const std::string& project, const TrackedConfig& config) {
  finish();
  if (is_main_process_) {
    for (const auto& tracker : trackers_) tracker->start(project, config);
  }
  started_ = true;
}

void Trackers::log(const TrackedValues& values, std::optional<std::int64_t> step) {
  if (!trackers_.empty() && !started_) {
    throw Error({.what = "the trackers have not been started",
                 .where = "log",
                 .hint = "call init_trackers before the first log, and log before end_training"});
  }
  if (!is_main_process_) return;
  for (const auto& tracker : trackers_) tracker->log(values, step);
}

Tracker& Trackers::get(std::string_view name) const {
  static InertTracker inert;
  if (trackers_.empty()) return inert;
  Tracker* const match = find(name);
  if (match == nullptr) {
    std::vector<std::string> names;
    for (const auto& tracker : trackers_) names.push_back(tracker->name());
    throw Error({.what = fmt::format("'{}' is not one of log_with's trackers: {}", name, join(names, ", ")),
                 .where = "get_tracker"});
  }
  return is_main_process_ ? *match : inert;
}

void Trackers::finish() {
  if (started_ && is_main_process_) {
    for (const auto& tracker : trackers_) tracker->finish();
  }
  started_ = false;
}

}  // namespace acc::detail
