// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/evaluation_results.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <utility>

#include "acc/runtime/trainer/default_loss.hpp"

namespace acc::detail {
namespace {

at::Tensor concatenate_padded(std::vector<at::Tensor> parts) {
  if (parts.empty()) return {};
  const auto has_width = [](const at::Tensor& part) { return part.dim() >= 2; };
  if (std::all_of(parts.begin(), parts.end(), has_width)) {
    std::int64_t width = 0;
    for (const at::Tensor& part : parts) width = std::max(width, part.size(1));
    for (at::Tensor& part : parts) {
      if (part.size(1) == width) continue;
      std::vector<std::int64_t> padding(static_cast<std::size_t>(2 * (part.dim() - 1)), 0);
      padding.back() = width - part.size(1);
      part = at::constant_pad_nd(part, padding, kPadding);
    }
  }
  return at::cat(parts);
}

}  // namespace

void EvaluationResults::add(const LossOutput& output, std::int64_t rows) {
  if (output.loss.defined()) {
    const at::Tensor loss_of_rows = output.loss.detach().mean().to(at::kFloat).reshape({1}).repeat({rows});
    losses_.push_back(accelerator_.gather_for_metrics(loss_of_rows).cpu());
  }
  keep(predictions_, output.logits);
  keep(labels_, output.labels);
}

void EvaluationResults::keep(std::vector<at::Tensor>& parts, const at::Tensor& part) const {
  if (!keeps_predictions_ || !part.defined()) return;
  const at::Tensor whole =
      part.dim() < 2 ? part : accelerator_.pad_across_processes(part, {.dim = 1, .pad_index = kPadding});
  parts.push_back(accelerator_.gather_for_metrics(whole.contiguous()).cpu());
}

std::optional<double> EvaluationResults::mean_loss(bool only_finite) const {
  if (losses_.empty()) return std::nullopt;
  at::Tensor all = at::cat(losses_);
  const at::Tensor finite = at::isfinite(all);
  if (only_finite && finite.any().item<bool>()) all = all.masked_select(finite);
  return all.to(at::kDouble).mean().item<double>();
}

EvalPrediction EvaluationResults::take_predictions() {
  return {.predictions = concatenate_padded(std::move(predictions_)),
          .label_ids = concatenate_padded(std::move(labels_))};
}

}  // namespace acc::detail
