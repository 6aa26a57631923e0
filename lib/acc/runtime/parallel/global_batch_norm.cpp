// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/global_batch_norm.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>

#include <optional>

#include "acc/runtime/parallel/custom_function.hpp"
#include "acc/runtime/parallel/held_in_graph.hpp"
#include "acc/runtime/parallel/process_group.hpp"

namespace acc {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Group = std::shared_ptr<ProcessGroup>;

// All but the channels.
std::vector<std::int64_t> reduced_dims(const at::Tensor& input) {
  std::vector<std::int64_t> dims;
  for (std::int64_t dim = 0; dim < input.dim(); ++dim) {
    if (dim != 1) dims.push_back(dim);
  }
  return dims;
}

// [C] as [1, C, 1, ...].
at::Tensor per_channel(const at::Tensor& values, const at::Tensor& input) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = values.numel();
  return values.view(shape);
}

// Half types are summed up as float32.
at::ScalarType type_of_statistics(const at::Tensor& input) {
  return input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

struct Statistics {
  at::Tensor mean;
  at::Tensor var;
  double count;
};

Statistics statistics_of_all(const at::Tensor& input, ProcessGroup& group) {
  const std::int64_t channels = input.size(1);
  const std::int64_t count = input.numel() / channels;
  const at::TensorOptions options = input.options().dtype(at::kDouble);
  at::Tensor own = at::zeros({2, channels}, options);
  if (count > 0) {
    const auto [var, mean] =
        at::var_mean(input.to(type_of_statistics(input)), reduced_dims(input), /*unbiased=*/false);
    own = at::cat({mean.view({1, -1}), var.view({1, -1})}).to(at::kDouble);
  }
  const at::Tensor counted = at::full({1, channels}, static_cast<double>(count), options);
  const at::Tensor all = group.all_gather(at::cat({own, counted}));
  const at::Tensor means = all.select(1, 0);
  const at::Tensor counts = all.select(1, 2);
  const at::Tensor total = counts.sum(0);
  const at::Tensor mean = (means * counts).sum(0) / total;
  const at::Tensor var = (counts * (all.select(1, 1) + (means - mean).square())).sum(0) / total;
  return {mean, var, total[0].item<double>()};
}

void update_running(const BatchNormTensors& tensors, const Statistics& batch) {
  const auto blend = [&](at::Tensor running, const at::Tensor& now) {
    if (running.defined())
      running.mul_(1 - tensors.momentum).add_(now.to(running.scalar_type()), tensors.momentum);
  };
  blend(tensors.running_mean, batch.mean);
  blend(tensors.running_var, batch.var * (batch.count / (batch.count - 1)));
}

struct GlobalBatchNorm : torch::autograd::Function<GlobalBatchNorm> {
  // Where weight and bias are absent, LibTorch counts them as no inputs.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
                            const BatchNormTensors& tensors, const Group& group) {
    const Statistics batch = statistics_of_all(input, *group);
    update_running(tensors, batch);
    const at::ScalarType type = type_of_statistics(input);
    const at::Tensor mean = batch.mean.to(type);
    context->save_for_backward({input, tensors.weight, mean, (batch.var + tensors.eps).rsqrt().to(type)});
    context->saved_data["count"] = batch.count;
    context->saved_data["has_bias"] = tensors.bias.defined();
    context->saved_data["group"] = HeldInGraph<Group>::hold(group);
    if (input.numel() == 0) return at::empty_like(input);
    // With training off it normalizes by the statistics that it is given.
    return std::get<0>(at::native_batch_norm(input, weight, bias, mean, batch.var.to(type),
                                             /*training=*/false, tensors.momentum, tensors.eps));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& invstd = saved[3];
    const double count = context->saved_data["count"].toDouble();
    const at::Tensor dy = gradients[0].to(invstd.scalar_type());
    const at::Tensor normalized =
        (input.to(invstd.scalar_type()) - per_channel(saved[2], input)) * per_channel(invstd, input);
    const std::vector<std::int64_t> dims = reduced_dims(input);
    const at::Tensor own_bias = dy.sum(dims);
    const at::Tensor own_weight = (dy * normalized).sum(dims);

    at::Tensor grad_input;
    if (context->needs_input_grad(0)) {
      at::Tensor means = at::cat({own_bias.view({1, -1}), own_weight.view({1, -1})});
      HeldInGraph<Group>::held(context->saved_data["group"])->all_reduce(means, ReduceOp::sum);
      means = means / count;
      const at::Tensor scale = weight.defined() ? invstd * weight.to(invstd.scalar_type()) : invstd;
      grad_input = (dy - per_channel(means[0], input) - normalized * per_channel(means[1], input)) *
                   per_channel(scale, input);
      grad_input = grad_input.to(input.scalar_type());
    }
    const bool has_bias = context->saved_data["has_bias"].toBool();
    return {
        grad_input, weight.defined() ? own_weight : at::Tensor(), has_bias ? own_bias : at::Tensor(), {}, {}};
  }
};

}  // namespace

at::Tensor global_batch_norm(const at::Tensor& input, const BatchNormTensors& tensors, const Group& group) {
  return GlobalBatchNorm::apply(input, tensors.weight, tensors.bias, tensors, group);
}

}  // namespace acc
