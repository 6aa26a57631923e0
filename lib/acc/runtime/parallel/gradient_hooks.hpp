// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace acc::detail {

/// Returns copies of `outputs` that pass gradients on to them and then call `on_backward`, as the _DDPSink of
/// Python's DistributedDataParallel. An output that the loss does not use passes on no gradient instead of
/// zeros, so that parameters on which only this output depends count as unused.
std::vector<at::Tensor> pass_through_sink(const std::vector<at::Tensor>& outputs,
                                          const std::function<void()>& on_backward);

/// Functions that are called when gradients have been accumulated, until this object ends.
class GradientHooks {
 public:
  GradientHooks();
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  /// Calls `function` after each gradient that `parameter` has received, on the thread of its backward.
  void add(const at::Tensor& parameter, std::function<void()> function);

  /// Whether a parameter has got a new gradient accumulator since it was added, which does not call its
  /// function: LibTorch makes one when the type or the device of the parameter changes. `index` counts the
  /// calls of `add`.
  bool is_detached(std::size_t index) const;
  bool any_is_detached() const;

 private:
  struct Hook;
  std::vector<Hook> hooks_;
};

/// Detects gradients that should be averaged but are not: those that a model's parameters receive without a
/// forward that announced them, or a second time after it. LibTorch's Reducer would accumulate them on this
/// process without an error.
class GradientWatch {
 public:
  /// If `several_times`, as for a static graph, a parameter may receive more than one gradient after each
  /// forward. While active, it calls `on_received` with the index of each parameter that received one.
  GradientWatch(const std::vector<at::Tensor>& parameters, bool several_times,
                std::function<void(std::size_t)> on_received = {});

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

  /// A parameter that got an unexpected gradient since the last call.
  std::optional<std::size_t> take_unexpected() { return std::exchange(unexpected_, std::nullopt); }

 private:
  void on_gradient(std::size_t parameter);

  bool several_times_;
  std::function<void(std::size_t)> on_received_;
  bool active_ = true;
  bool local_ = false;
  std::optional<std::size_t> unexpected_ = {};
  /// The number of announced forwards, and for each parameter up to which of them it has received gradients.
  std::uint64_t forwards_ = 0;
  std::vector<std::uint64_t> received_;
  GradientHooks hooks_ = {};
};

}  // namespace acc::detail
