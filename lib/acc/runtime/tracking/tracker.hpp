// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace acc {

/// A truth value, a number or text.
struct TrackedScalar : std::variant<bool, std::int64_t, double, std::string> {
  TrackedScalar(bool truth) : variant(truth) {}
  template <std::integral Whole>
  TrackedScalar(Whole number) : variant(static_cast<std::int64_t>(number)) {}
  template <std::floating_point Number>
  TrackedScalar(Number number) : variant(static_cast<double>(number)) {}
  TrackedScalar(std::string text) : variant(std::move(text)) {}
  TrackedScalar(const char* text) : variant(std::string(text)) {}
};

/// Numbers that belong in one chart, such as `{{"train", 0.5}, {"test", 0.7}}`.
using TrackedGroup = std::map<std::string, double>;

/// The values of a step by name: numbers, text and groups.
using TrackedValues = std::map<std::string, std::variant<TrackedScalar, TrackedGroup>>;

/// Tensors by name.
using TrackedTensors = std::map<std::string, at::Tensor>;

/// The hyper-parameters of a training by name.
using TrackedConfig = std::map<std::string, TrackedScalar>;

/// Stores the metrics of a training: accelerate's GeneralTracker. Only the main process calls it. A program
/// passes a class of its own to AcceleratorOptions::log_with as a shared_ptr.
class Tracker {
 public:
  virtual ~Tracker() = default;

  /// The name for Accelerator::get_tracker.
  virtual std::string name() const = 0;

  /// Called when a training of `project` begins. `config` may be empty.
  virtual void start(const std::string& project, const TrackedConfig& config) = 0;

  /// Stores values, with the step if there is one.
  virtual void log(const TrackedValues& values, std::optional<std::int64_t> step) = 0;

  /// Stores images by name: [N, C, H, W] or [C, H, W], bytes or numbers from 0 to 1. By default does nothing.
  virtual void log_images(const TrackedTensors& /*images*/, std::optional<std::int64_t> /*step*/) {}

  /// Stores a histogram of each tensor's values, without those that are not finite. By default does nothing.
  virtual void log_histograms(const TrackedTensors& /*values*/, std::optional<std::int64_t> /*step*/) {}

  /// Called when the training ends; another one may start.
  virtual void finish() = 0;
};

/// `tensorboard`, `jsonl`, `csv`, `all` (of these), or the program's own tracker.
using TrackerChoice = std::variant<std::string, std::shared_ptr<Tracker>>;

namespace detail {

/// The trackers of an Accelerator. On all but the main process the functions do nothing.
class Trackers {
 public:
  /// Throws Error{usage} for an unknown name, when a tracker needs a `logging_dir` and there is none, and
  /// when two trackers have the same name.
  Trackers(const std::vector<TrackerChoice>& choices, const std::filesystem::path& logging_dir,
           bool is_main_process);

  /// Starts the trackers; finishes a training that was started before.
  void start(const std::string& project, const TrackedConfig& config);

  /// Throws Error{usage} when trackers were chosen but not started.
  void log(const TrackedValues& values, std::optional<std::int64_t> step);

  /// The tracker of this name. Throws Error{usage} when trackers were chosen, but not this one.
  Tracker& get(std::string_view name) const;

  void finish();

 private:
  // Null if there is no such tracker.
  Tracker* find(std::string_view name) const;

  std::vector<std::shared_ptr<Tracker>> trackers_ = {};
  bool is_main_process_;
  bool started_ = false;
};

}  // namespace detail

}  // namespace acc
