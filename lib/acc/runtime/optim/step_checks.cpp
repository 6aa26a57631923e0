// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/step_checks.hpp"

#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include <algorithm>

#include "acc/base/error.hpp"
#include "acc/runtime/parallel/ddp.hpp"

namespace acc {

void StepChecks::require_prepared(const torch::optim::Optimizer& optimizer) const {
  if (options_.allow_unprepared_parameters) return;
  const auto is_prepared = [&](const at::Tensor& parameter) {
    return std::ranges::any_of(models_, [&](const auto& model) { return model->has_parameter(parameter); });
  };
  std::size_t all = 0;
  std::size_t unprepared = 0;
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      ++all;
      if (!is_prepared(parameter)) ++unprepared;
    }
  }
  if (unprepared == 0) return;
  throw Error(
      {.what = fmt::format("{} of its {} parameters belong to no prepared model, so each process would "
                           "train them by its own gradients alone",
                           unprepared, all),
       .where = "optimizer step",
       .hint = "prepare the model that they belong to, with everything that is trained registered in it; "
               "AcceleratorOptions::allow_unprepared_parameters, where the program averages them itself"});
}

void StepChecks::require_announced_gradients() const {
  for (const auto& model : models_) model->require_announced_gradients();
}

void StepChecks::require_equal_parameters() const {
  for (const auto& model : models_) model->require_equal_parameters();
}

void StepChecks::after_step(std::int64_t steps) const {
  if (options_.check_parameters_every == 0 || steps % options_.check_parameters_every != 0) return;
  if (std::ranges::all_of(models_, [](const auto& model) { return model->in_step(); }))
    require_equal_parameters();
}

}  // namespace acc
