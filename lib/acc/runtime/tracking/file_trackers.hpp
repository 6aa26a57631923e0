// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "acc/runtime/tracking/appended_file.hpp"
#include "acc/runtime/tracking/event_file.hpp"
#include "acc/runtime/tracking/tracker.hpp"

namespace acc {

/// Writes `<logging_dir>/<project>.jsonl`, a JSON object on each line: first `{"project":…, "time":…,
/// "config":{…}}`, then `{"step":…, "time":…, "values":{…}}` for each call of log. Times are seconds since
/// 1970; `step` is left out of calls without a step. Numbers that are not finite become null, since JSON
/// cannot represent them. A later training of the project appends to the same file.
class JsonLinesTracker : public Tracker {
 public:
  explicit JsonLinesTracker(std::filesystem::path logging_dir) : logging_dir_(std::move(logging_dir)) {}

  std::string name() const override { return "jsonl"; }
  void start(const std::string& project, const TrackedConfig& config) override;
  void log(const TrackedValues& values, std::optional<std::int64_t> step) override;
  void finish() override { file_.reset(); }

 private:
  std::filesystem::path logging_dir_;
  std::optional<detail::AppendedFile> file_ = {};
};

/// Writes `<logging_dir>/<project>.csv`, a line for each call of log: `step`, `time` (seconds since 1970),
/// and a column for each name, `<group>/<name>` for the names of a group; a cell is empty if a call did not
/// have the name. The columns of names `step` and `time` are `values/step` and `values/time`. A new name gets
/// a new last column, for which the file is rewritten. A later training of the project appends to the same
/// file, and one that runs at the same time on this machine adds its rows and columns to it. The config goes
/// to `<project>.hparams.yml`.
class CsvTracker : public Tracker {
 public:
  explicit CsvTracker(std::filesystem::path logging_dir) : logging_dir_(std::move(logging_dir)) {}

  std::string name() const override { return "csv"; }
  /// Throws Error{config} when the file exists and is not such a table.
  void start(const std::string& project, const TrackedConfig& config) override;
  void log(const TrackedValues& values, std::optional<std::int64_t> step) override;
  void finish() override { file_.reset(); }

 private:
  void open_table();
  void follow_replacement();
  void add_columns(const std::vector<std::string>& names);

  std::filesystem::path logging_dir_;
  std::filesystem::path path_ = {};
  std::vector<std::string> columns_ = {};
  std::optional<detail::AppendedFile> file_ = {};
};

/// Writes event files for `tensorboard --logdir` to `<logging_dir>/<project>`, as accelerate's
/// TensorBoardTracker: numbers as scalars, texts as text, a group as a chart of several runs, each in a
/// folder
/// `<group>_<name>`. The config goes to a folder named after the time, as hyper-parameters and as
/// `hparams.yml`.
class TensorBoardTracker : public Tracker {
 public:
  explicit TensorBoardTracker(std::filesystem::path logging_dir) : logging_dir_(std::move(logging_dir)) {}

  std::string name() const override { return "tensorboard"; }
  void start(const std::string& project, const TrackedConfig& config) override;
  void log(const TrackedValues& values, std::optional<std::int64_t> step) override;
  void log_images(const TrackedTensors& images, std::optional<std::int64_t> step) override;
  void log_histograms(const TrackedTensors& values, std::optional<std::int64_t> step) override;
  void finish() override { files_.clear(); }

 private:
  void store_config(const TrackedConfig& config) const;
  // The event file in a folder below the project's; created when first needed.
  detail::EventFile& file(const std::string& folder);

  std::filesystem::path logging_dir_;
  std::filesystem::path folder_ = {};
  std::map<std::string, detail::EventFile> files_ = {};
};

namespace detail {

/// Writes a YAML mapping that has the same meaning in YAML 1.1 and 1.2.
std::string to_yaml(const TrackedConfig& config);

}  // namespace detail

}  // namespace acc
