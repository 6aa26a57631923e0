// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "acc/runtime/tracking/appended_file.hpp"
#include "acc/runtime/tracking/tracker.hpp"

namespace acc {

/// Writes `<logging_dir>/<project>.jsonl`, a JSON object on each line: first `{"project":…, "time":…,
/// "config":{…}}`, then `{"step":…, "time":…, "values":{…}}` for each call of log. Times are seconds since
/// 1970; a call without a step has none. Numbers that are not finite become null, for which JSON has no other
/// word. A later training of the project goes on in the same file.
class JsonLinesTracker : public Tracker {
 public:
  explicit JsonLinesTracker(std::filesystem::path logging_dir) : logging_dir_(std::move(logging_dir)) {}

  std::string name() const override { return "jsonl"; }
  void start(const std::string& project, const TrackedConfig& config) override;
  void log(const TrackedValues& values, std::optional<std::int64_t> step) override;
  void finish() override { file_.reset(); }

 private:
  std::filesystem::path logging_dir_;
  std::optional<AppendedFile> file_ = {};
};

}  // namespace acc
