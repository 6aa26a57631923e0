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

void EvaluationResults::add(const LossOutput& output, std::int64_t rows, const at::Tensor& inputs) {
  if (output.loss.defined())
    gather(losses_, output.loss.detach().mean().to(at::kFloat).reshape({1}).repeat({rows}));
  if (kept_.predictions) {
    const at::Tensor labels = padded(output.labels);
    at::Tensor logits = padded(output.logits);
    if (kept_.preprocess_logits && logits.defined()) logits = kept_.preprocess_logits(logits, labels);
    gather(predictions_, logits);
    gather(labels_, labels);
  }
  if (kept_.inputs) gather(inputs_, padded(inputs));
}

at::Tensor EvaluationResults::padded(const at::Tensor& part) const {
  if (!part.defined() || part.dim() < 2) return part;
  return accelerator_.pad_across_processes(part, {.dim = 1, .pad_index = kPadding});
}

void EvaluationResults::gather(std::vector<at::Tensor>& parts, const at::Tensor& part) const {
  if (part.defined()) parts.push_back(accelerator_.gather_for_metrics(part.contiguous()).cpu());
}

at::Tensor EvaluationResults::losses() const {
  return losses_.empty() ? at::Tensor() : at::cat(losses_);
}

std::optional<double> EvaluationResults::mean_loss(bool only_finite) const {
  if (losses_.empty()) return std::nullopt;
  at::Tensor all = losses();
  const at::Tensor finite = at::isfinite(all);
  if (only_finite && finite.any().item<bool>()) all = all.masked_select(finite);
  return all.to(at::kDouble).mean().item<double>();
}

EvalPrediction EvaluationResults::take_predictions() {
  return {.predictions = concatenate_padded(std::move(predictions_)),
          .label_ids = concatenate_padded(std::move(labels_)),
          .inputs = concatenate_padded(std::move(inputs_))};
}

}  // namespace acc::detail
