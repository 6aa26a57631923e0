// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/gradient_hooks.hpp"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "acc/runtime/parallel/autograd_function.hpp"

namespace acc::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using Callback = std::function<void()>;

struct Sink : torch::autograd::Function<Sink> {
  // `outputs` must be a TensorList: LibTorch does not record the tensors of other lists as inputs.
  static variable_list forward(AutogradContext* context, const Callback& on_backward,
                               at::TensorList outputs) {
    context->set_materialize_grads(false);
    context->saved_data["on_backward"] = HeldInGraph<Callback>::hold(on_backward);
    variable_list copies;
    copies.reserve(outputs.size());
    for (const at::Tensor& output : outputs) copies.push_back(output.clone());
    return copies;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    HeldInGraph<Callback>::held(context->saved_data["on_backward"])();
    gradients.insert(gradients.begin(), at::Tensor());
    return gradients;
  }
};

}  // namespace

std::vector<at::Tensor> pass_through_sink(const std::vector<at::Tensor>& outputs,
                                          const std::function<void()>& on_backward) {
  return Sink::apply(on_backward, at::TensorList(outputs));
}

struct GradientHooks::Hook {
  at::Tensor parameter = {};
  decltype(torch::autograd::Edge::function) node = {};  // LibTorch 2.15 has another pointer
  std::uintptr_t key = 0;
};

GradientHooks::GradientHooks() = default;

GradientHooks::~GradientHooks() {
  for (const Hook& hook : hooks_) hook.node->del_post_hook(hook.key);
}

void GradientHooks::add(const at::Tensor& parameter, std::function<void()> function) {
  auto node = torch::autograd::impl::grad_accumulator(parameter);
  const auto key = node->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [function = std::move(function)](const variable_list& outputs, const variable_list&) {
        function();
        return outputs;
      }));
  hooks_.push_back({.parameter = parameter, .node = std::move(node), .key = key});
}

bool GradientHooks::is_detached(std::size_t index) const {
  const Hook& hook = hooks_[index];
  return torch::autograd::impl::try_get_grad_accumulator(hook.parameter).get() != hook.node.get();
}

bool GradientHooks::any_is_detached() const {
  for (std::size_t index = 0; index < hooks_.size(); ++index) {
    if (is_detached(index)) return true;
  }
  return false;
}

GradientWatch::GradientWatch(const std::vector<at::Tensor>& parameters, bool several_times,
                             std::function<void(std::size_t)> on_received)
    : several_times_(several_times), on_received_(std::move(on_received)), received_(parameters.size(), 0) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    hooks_.add(parameters[i], [this, i] { on_gradient(i); });
}

void GradientWatch::expect_averaged() {
  ++forwards_;
  local_ = false;
}

void GradientWatch::on_gradient(std::size_t parameter) {
  const bool announced = received_[parameter] < forwards_ || (several_times_ && forwards_ > 0);
  if (active_ && !local_ && !announced) unexpected_ = std::min(parameter, unexpected_.value_or(parameter));
  if (!active_) return;
  received_[parameter] = forwards_;
  if (on_received_) on_received_(parameter);
}

}  // namespace acc::detail
