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
  if (std::ranges::all_of(parts, has_width)) {
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

EvalPrediction EvaluationResults::add(const LossOutput& output, std::int64_t rows, const at::Tensor& inputs) {
  EvalPrediction batch;
  if (output.loss.defined()) {
    losses_.push_back(gathered(output.loss.detach().mean().to(at::kFloat).reshape({1}).repeat({rows})));
    if (kept_.losses) batch.losses = losses_.back();
  }
  if (kept_.predictions) {
    const at::Tensor labels = padded(output.labels);
    at::Tensor logits = padded(output.logits);
    if (kept_.preprocess_logits && logits.defined()) logits = kept_.preprocess_logits(logits, labels);
    batch.predictions = gathered(logits);
    batch.label_ids = gathered(labels);
  }
  if (kept_.inputs) batch.inputs = gathered(padded(inputs));
  if (kept_.after_batch) batches_.push_back(batch);
  return batch;
}

at::Tensor EvaluationResults::padded(const at::Tensor& part) const {
  if (!part.defined() || part.dim() < 2) return part;
  return accelerator_.pad_across_processes(part, {.dim = 1, .pad_index = kPadding});
}

at::Tensor EvaluationResults::gathered(const at::Tensor& part) const {
  return part.defined() ? accelerator_.gather_for_metrics(part.contiguous()).cpu() : part;
}

std::optional<double> EvaluationResults::mean_loss(bool only_finite) const {
  if (losses_.empty()) return std::nullopt;
  at::Tensor all = at::cat(losses_);
  const at::Tensor finite = at::isfinite(all);
  if (only_finite && finite.any().item<bool>()) all = all.masked_select(finite);
  return all.to(at::kDouble).mean().item<double>();
}

EvalPrediction EvaluationResults::concatenated() const {
  return {.predictions = concatenate_padded(parts(&EvalPrediction::predictions)),
          .label_ids = concatenate_padded(parts(&EvalPrediction::label_ids)),
          .inputs = concatenate_padded(parts(&EvalPrediction::inputs)),
          .losses = concatenate_padded(parts(&EvalPrediction::losses))};
}

std::vector<at::Tensor> EvaluationResults::parts(at::Tensor EvalPrediction::* part) const {
  std::vector<at::Tensor> tensors;
  for (const EvalPrediction& batch : batches_)
    if ((batch.*part).defined()) tensors.push_back(batch.*part);
  return tensors;
}

}  // namespace acc::detail
