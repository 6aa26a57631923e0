// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace acc::detail {

/// Returns copies of `outputs` that pass gradients on to them and then call `on_backward`, as the _DDPSink of
/// Python's DistributedDataParallel. An output that the loss does not use passes on no gradient instead of
/// zeros, so that parameters on which only this output depends count as unused.
std::vector<at::Tensor> pass_through_sink(const std::vector<at::Tensor>& outputs,
                                          const std::function<void()>& on_backward);

/// Functions that are called before and after gradients are accumulated, until this object ends.
class GradientHooks {
 public:
  GradientHooks();
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  /// Calls `after` after each gradient that `parameter` has received, on the thread of its backward, and
  /// `before` before its gradient changes.
  void add(const at::Tensor& parameter, std::function<void()> after, std::function<void()> before = {});

  /// Whether a parameter has got a new gradient accumulator since it was added, which does not call its
  /// function: LibTorch makes one when the type or the device of the parameter changes. `index` counts the
  /// calls of `add`.
  bool is_detached(std::size_t index) const;
  bool any_is_detached() const;

 private:
  struct Hook;
  std::vector<Hook> hooks_;
};

/// Detects gradients that should be averaged but are not: those that a model's parameters receive when its
/// Reducer expects none, as without a forward or a second time after it. LibTorch's Reducer would accumulate
/// them on this process without an error.
class GradientWatch {
 public:
  /// Whether the Reducer averages the gradients that arrive now.
  using Averages = std::function<bool()>;
  /// Called before the Reducer takes the gradient of a parameter; `again`, if it took one since the last
  /// forward.
  using OnAveraged = std::function<void(std::size_t parameter, bool again)>;

  GradientWatch(const std::vector<at::Tensor>& parameters, Averages averages, OnAveraged on_averaged);

  /// Announces the gradients of a forward; they are averaged.
  void expect_averaged();
  /// Announces that the gradients of a forward stay on this process, as under no_sync; its backward may come
  /// later.
  void expect_local() { local_ = true; }

  /// Switches detection off while gradients are meant to stay on this process.
  void set_active(bool on) { active_ = on; }

  /// Whether a parameter's gradients are no longer seen, see GradientHooks.
  bool is_detached(std::size_t parameter) const { return hooks_.is_detached(parameter); }
  bool any_is_detached() const { return hooks_.any_is_detached(); }

  /// Whether the last gradient of `parameter` was averaged, or was meant to stay on this process.
  bool expected(std::size_t parameter) const { return received_[parameter] == Gradient::expected; }

  /// The parameters whose last gradients since the call before were not expected.
  std::vector<std::size_t> take_unexpected();

 private:
  enum class Gradient : std::uint8_t { none, expected, unexpected };

  void on_gradient(std::size_t parameter);

  Averages averages_;
  OnAveraged on_averaged_;
  bool active_ = true;
  bool local_ = false;
  bool any_is_unexpected_ = false;
  std::vector<Gradient> received_;
  /// The number of announced forwards, and for each parameter up to which of them its gradients are averaged.
  std::uint64_t forwards_ = 0;
  std::vector<std::uint64_t> averaged_;
  GradientHooks hooks_ = {};
};

}  // namespace acc::detail
