// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "acc/runtime/tracking/tracker.hpp"

namespace acc {

/// `tensorboard`, `jsonl`, `all` of them, or one of the program's own.
using TrackerChoice = std::variant<std::string, std::shared_ptr<Tracker>>;

/// The trackers of an Accelerator. They work on the main process; on the others everything does nothing.
class Trackers {
 public:
  /// Throws Error{usage} for a name that is none of the above, when it needs a `logging_dir` and there is
  /// none, and when two have one name.
  Trackers(const std::vector<TrackerChoice>& choices, const std::filesystem::path& logging_dir,
           bool is_main_process);

  /// Starts them; a training that was started before is finished first.
  void start(const std::string& project, const TrackedConfig& config);

  /// Throws Error{usage} when trackers were chosen and not started.
  void log(const TrackedValues& values, std::optional<std::int64_t> step);

  /// Throws Error{usage} when trackers were chosen and this one was not.
  Tracker& get(std::string_view name) const;

  void finish();

 private:
  // Null: there is none.
  Tracker* find(std::string_view name) const;

  std::vector<std::shared_ptr<Tracker>> trackers_ = {};
  bool is_main_process_;
  bool started_ = false;
};

}  // namespace acc
