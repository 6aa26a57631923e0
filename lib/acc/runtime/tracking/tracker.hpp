// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

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

/// What is logged in a step, by name: numbers, text and groups.
using TrackedValues = std::map<std::string, std::variant<TrackedScalar, TrackedGroup>>;

/// What a training was started with: its hyper-parameters, by name.
using TrackedConfig = std::map<std::string, TrackedScalar>;

/// Keeps what a training logs: accelerate's GeneralTracker. Only the main process calls it. A class of the
/// program's own is given to AcceleratorOptions::log_with as a shared_ptr.
class Tracker {
 public:
  virtual ~Tracker() = default;

  /// What Accelerator::get_tracker finds it by.
  virtual std::string name() const = 0;

  /// A training of `project` begins. An empty `config` is none.
  virtual void start(const std::string& project, const TrackedConfig& config) = 0;

  /// Something to keep; without a step it belongs to none.
  virtual void log(const TrackedValues& values, std::optional<std::int64_t> step) = 0;

  /// Nothing more comes, unless another training starts.
  virtual void finish() = 0;
};

}  // namespace acc
