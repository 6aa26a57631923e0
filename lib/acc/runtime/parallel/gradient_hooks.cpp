// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/gradient_hooks.hpp"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

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

namespace {

// LibTorch has one that is called afterwards alone.
class PreHook : public torch::autograd::FunctionPreHook {
 public:
  explicit PreHook(std::function<void()> function) : function_(std::move(function)) {}
  variable_list operator()(const variable_list& gradients) override {
    if (gradients.front().defined()) function_();
    return gradients;
  }

 private:
  std::function<void()> function_;
};

}  // namespace

struct GradientHooks::Hook {
  at::Tensor parameter = {};
  decltype(torch::autograd::Edge::function) node = {};  // LibTorch 2.15 has another pointer
  std::uintptr_t key = 0;
  const PreHook* before = nullptr;
};

GradientHooks::GradientHooks() = default;

GradientHooks::~GradientHooks() {
  for (const Hook& hook : hooks_) {
    hook.node->del_post_hook(hook.key);
    std::erase_if(hook.node->pre_hooks(), [&](const auto& one) { return one.get() == hook.before; });
  }
}

void GradientHooks::add(const at::Tensor& parameter, std::function<void()> after,
                        std::function<void()> before) {
  auto node = torch::autograd::impl::grad_accumulator(parameter);
  const auto key = node->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [after = std::move(after)](const variable_list& outputs, const variable_list&) {
        after();
        return outputs;
      }));
  const PreHook* known = nullptr;
  if (before) {
    auto hook = std::make_unique<PreHook>(std::move(before));
    known = hook.get();
    node->add_pre_hook(std::move(hook));
  }
  hooks_.push_back({.parameter = parameter, .node = std::move(node), .key = key, .before = known});
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

GradientWatch::GradientWatch(const std::vector<at::Tensor>& parameters, Averages averages,
                             OnAveraged on_averaged)
    : averages_(std::move(averages)),
      on_averaged_(std::move(on_averaged)),
      received_(parameters.size(), Gradient::none),
      averaged_(parameters.size(), 0) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    hooks_.add(parameters[i], [this, i] { on_gradient(i); });
}

void GradientWatch::expect_averaged() {
  ++forwards_;
  local_ = false;
}

void GradientWatch::on_gradient(std::size_t parameter) {
  const bool averages = averages_();
  const bool expected = averages || local_ || !active_;
  received_[parameter] = expected ? Gradient::expected : Gradient::unexpected;
  any_is_unexpected_ = any_is_unexpected_ || !expected;
  if (averages) on_averaged_(parameter, std::exchange(averaged_[parameter], forwards_) == forwards_);
}

std::vector<std::size_t> GradientWatch::take_unexpected() {
  std::vector<std::size_t> unexpected;
  if (!std::exchange(any_is_unexpected_, false)) return unexpected;
  for (std::size_t i = 0; i < received_.size(); ++i) {
    if (received_[i] != Gradient::unexpected) continue;
    received_[i] = Gradient::none;
    unexpected.push_back(i);
  }
  return unexpected;
}

}  // namespace acc::detail
