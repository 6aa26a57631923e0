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

/// Numbers that belong into one chart, as `{{"train", 0.5}, {"test", 0.7}}`.
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

  /// A training of `project` begins. An empty `config` is none.
  virtual void start(const std::string& project, const TrackedConfig& config) = 0;

  /// Stores values, of a step if there is one.
  virtual void log(const TrackedValues& values, std::optional<std::int64_t> step) = 0;

  /// Stores pictures by name: [N, C, H, W] or [C, H, W], bytes or numbers from 0 to 1. Trackers that keep
  /// none ignore them.
  virtual void log_images(const TrackedTensors& /*images*/, std::optional<std::int64_t> /*step*/) {}

  /// Stores how the values of each tensor are distributed. Trackers that keep no histograms ignore them.
  virtual void log_histograms(const TrackedTensors& /*values*/, std::optional<std::int64_t> /*step*/) {}

  /// Ends the training; another one may start.
  virtual void finish() = 0;
};

/// `tensorboard`, `jsonl`, `csv`, `all` of them, or one of the program's own.
using TrackerChoice = std::variant<std::string, std::shared_ptr<Tracker>>;

namespace detail {

/// The trackers of an Accelerator. They work on the main process; on the others all functions do nothing.
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

}  // namespace detail

}  // namespace acc
