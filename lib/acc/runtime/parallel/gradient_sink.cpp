// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/gradient_sink.hpp"

#include "acc/runtime/parallel/custom_function.hpp"
#include "acc/runtime/parallel/held_in_graph.hpp"

namespace acc {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using Callback = std::function<void()>;

struct Sink : torch::autograd::Function<Sink> {
  // LibTorch takes the tensors of a list for inputs only where it comes as a TensorList.
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

}  // namespace acc
