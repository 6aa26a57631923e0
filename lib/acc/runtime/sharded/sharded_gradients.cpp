// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/sharded_gradients.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "acc/base/error.hpp"
#include "acc/runtime/sharded/unit.hpp"
#include "acc/runtime/tensors/nested_tensors.hpp"

namespace acc::detail {
namespace {

void add_gradients(Unit& unit, std::size_t piece, std::vector<at::Tensor>& parts) {
  for (const TrainedPart& part : unit.trained_parts())
    if (part.piece == piece && part.values.grad().defined()) parts.push_back(part.values.grad());
}

at::Tensor norm_of(const std::vector<at::Tensor>& tensors, double norm_type, at::Device device) {
  if (tensors.empty()) return at::zeros({}, at::TensorOptions(device).dtype(at::kDouble));
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(tensors, norm_type)), norm_type)
      .to(device, at::kDouble);
}

}  // namespace

bool any_is_sharded(const std::vector<at::Tensor>& parameters) {
  return std::ranges::any_of(parameters, [](const at::Tensor& one) { return unit_of(one) != nullptr; });
}

void require_no_shard_parts(const std::vector<at::Tensor>& parameters, std::string_view function) {
  if (std::ranges::none_of(parameters, &is_shard_part)) return;
  throw Error({.what =
                   "some of the parameters are the optimizer's, which has parts of this process's shards: "
                   "their norm is not that of the whole parameters",
               .where = std::string(function),
               .hint = "call accelerator.clip_grad_norm_ with the model's own: model->parameters(), or those "
                       "of its layers"});
}

namespace {

// The values of a gradient, to be changed in place: of a sparse one those that are there, each row once.
at::Tensor values_of_gradient(const at::Tensor& parameter) {
  if (!parameter.grad().is_sparse()) return parameter.grad();
  parameter.mutable_grad() = parameter.grad().coalesce();
  return parameter.grad()._values();
}

}  // namespace

LocalGradients local_gradients(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> distinct = parameters;
  keep_distinct(distinct);
  LocalGradients gradients;
  for (const at::Tensor& parameter : distinct) {
    if (Unit* unit = unit_of(parameter)) {
      add_gradients(*unit, unit->piece_at(parameter.storage_offset()), gradients.sharded);
    } else if (parameter.grad().defined()) {
      gradients.whole.push_back(values_of_gradient(parameter));
    }
  }
  return gradients;
}

at::Tensor clip_sharded_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm,
                                  double norm_type, ProcessGroup& group) {
  if (!(norm_type > 0)) {
    throw Error({.what = fmt::format("must be above 0 for a sharded model, not {}", norm_type),
                 .where = "clip_grad_norm_, norm_type"});
  }
  const at::NoGradGuard no_grad;
  LocalGradients gradients = local_gradients(parameters);
  const at::Device device = parameters.front().device();
  at::Tensor norm = norm_of(gradients.sharded, norm_type, device);
  if (std::isinf(norm_type)) {
    group.all_reduce(norm, ReduceOp::max);
  } else {
    norm = norm.pow(norm_type);
    group.all_reduce(norm, ReduceOp::sum);
    norm = norm.pow(1 / norm_type);
  }
  const at::Tensor total =
      at::linalg_vector_norm(at::stack({norm, norm_of(gradients.whole, norm_type, device)}), norm_type)
          .to(at::kFloat);
  std::vector<at::Tensor> all = std::move(gradients.sharded);
  std::ranges::move(gradients.whole, std::back_inserter(all));
  if (!all.empty()) at::_foreach_mul_(all, (max_norm / (total + 1e-6)).clamp_max(1.0));
  return total;
}

}  // namespace acc::detail
