// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/default_loss.hpp"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

#include "acc/base/error.hpp"

namespace acc {

at::Tensor detail::loss_of_step(const at::Tensor& loss) {
  if (loss.defined() && loss.numel() == 1) return loss.reshape({});
  const auto refuse = [](std::string what, const char* hint) {
    throw Error({.what = std::move(what), .where = "compute_loss", .hint = hint});
  };
  if (!loss.defined()) refuse("there is no loss to train with", "set LossOutput::loss, also in training");
  refuse(fmt::format("the loss has the sizes [{}] instead of one element", fmt::join(loss.sizes(), ", ")),
         "take its mean");
  return {};
}

at::Tensor default_loss(const at::Tensor& logits, const at::Tensor& labels, double label_smoothing) {
  const auto refuse = [&] {
    throw Error({.what = fmt::format("there is no loss for logits [{}] with labels [{}]",
                                     fmt::join(logits.sizes(), ", "), fmt::join(labels.sizes(), ", ")),
                 .where = "Trainer",
                 .hint = "override compute_loss"});
  };
  if (at::isFloatingType(labels.scalar_type())) {
    if (label_smoothing != 0)
      throw Error({.what = "smooths labels that are classes, and these are numbers",
                   .where = "label_smoothing_factor",
                   .hint = "leave it out"});
    if (logits.sizes() == labels.sizes()) return at::mse_loss(logits, labels);
    // A model with one output returns [N, 1] for labels [N].
    if (logits.dim() == labels.dim() + 1 && logits.size(-1) == 1 &&
        logits.squeeze(-1).sizes() == labels.sizes())
      return at::mse_loss(logits.squeeze(-1), labels);
    refuse();
  }
  const bool fits = logits.dim() == labels.dim() + 1 && (logits.dim() == 2 || logits.dim() == 3) &&
                    logits.sizes().slice(0, static_cast<std::size_t>(labels.dim())) == labels.sizes();
  if (!fits) refuse();
  return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}), labels.reshape({-1}).to(at::kLong), {},
                                at::Reduction::Mean, detail::kPadding, label_smoothing);
}

}  // namespace acc
