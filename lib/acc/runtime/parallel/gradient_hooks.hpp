// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace torch::autograd {
struct Node;
}

namespace acc::detail {

/// Copies of `outputs` that pass gradients on to them and then call `on_backward`, as the sink of Python's
/// DistributedDataParallel. An output that the loss does not use passes no gradient on, rather than one of
/// zeros: parameters that lead to it alone count as unused.
std::vector<at::Tensor> pass_through_sink(const std::vector<at::Tensor>& outputs,
                                          const std::function<void()>& on_backward);

/// Detects gradients that are not averaged although they should be: those that reach a model's parameters
/// without a forward that announced them, or once more after the announced ones. LibTorch's Reducer silently
/// adds them up on this process.
class GradientWatch {
 public:
  /// With `several_times`, as for a static graph, a parameter may receive more than one gradient after each
  /// forward.
  GradientWatch(const std::vector<at::Tensor>& parameters, bool several_times);
  ~GradientWatch();
  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;

  /// A forward ran whose gradients are averaged.
  void expect_averaged();
  /// A forward ran whose gradients stay on this process, as under no_sync; its backward may come later.
  void expect_local() { local_ = true; }

  /// Off while gradients are meant to stay on this process.
  void set_active(bool on) { active_ = on; }

  /// Whether such gradients came since the last call.
  bool take_unexpected() { return std::exchange(unexpected_, false); }

 private:
  void on_gradient(std::size_t parameter);

  struct Hook {
    std::shared_ptr<torch::autograd::Node> node = {};
    std::uintptr_t key = 0;
  };
  std::vector<Hook> hooks_ = {};
  bool several_times_;
  bool active_ = true;
  bool local_ = false;
  bool unexpected_ = false;
  /// Forwards whose gradients are averaged, and up to which of them each parameter has received its own.
  std::uint64_t forwards_ = 0;
  std::vector<std::uint64_t> received_;
};

}  // namespace acc::detail
