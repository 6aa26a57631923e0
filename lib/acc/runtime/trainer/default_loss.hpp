// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace acc {

namespace detail {

/// The padding value of labels and predictions in transformers; the default loss ignores such labels.
inline constexpr std::int64_t kPadding = -100;

/// The loss of a training step without dimensions. Throws Error{usage} unless it has one element.
at::Tensor loss_of_step(const at::Tensor& loss);

}  // namespace detail

/// The default loss of a Trainer: cross entropy for integer labels (logits `[N, C]` with labels `[N]`, or
/// `[N, T, C]` with `[N, T]`; labels of -100 are ignored), mean squared error for floating-point labels.
/// Throws Error{usage} for other shapes, and for label smoothing of floating-point labels.
at::Tensor default_loss(const at::Tensor& logits, const at::Tensor& labels, double label_smoothing = 0);

}  // namespace acc
