// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "acc/runtime/tracking/event_file.hpp"
#include "acc/runtime/tracking/tracker.hpp"

namespace acc {

/// Writes what `tensorboard --logdir` shows, to `<logging_dir>/<project>`, as accelerate's
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
  void finish() override { files_.clear(); }

 private:
  void store_config(const TrackedConfig& config) const;
  // In a folder below the project's, which is made when it is first needed.
  EventFile& file(const std::string& folder);

  std::filesystem::path logging_dir_;
  std::filesystem::path folder_ = {};
  std::map<std::string, EventFile> files_ = {};
};

/// A YAML mapping that YAML 1.1 and 1.2 read alike.
std::string to_yaml(const TrackedConfig& config);

}  // namespace acc
