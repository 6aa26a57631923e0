// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/gradient_reduction.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

namespace acc::detail {

GradientReduction::GradientReduction(const Unit& unit)
    : unit_(unit),
      trained_(static_cast<std::size_t>(std::ranges::count_if(unit.pieces(), &Piece::trains))),
      added_(unit.pieces().size(), false),
      arrived_(unit.pieces().size(), false) {}

at::Tensor GradientReduction::piece_in(const at::Tensor& flat, std::size_t piece) const {
  const Piece& layout = unit_.pieces()[piece];
  return flat.narrow(0, layout.offset, layout.numel).view(layout.shape);
}

void GradientReduction::add(std::size_t piece, const at::Tensor& gradient, bool local) {
  const at::NoGradGuard no_grad;
  const UnitOptions& options = unit_.options();
  const at::TensorOptions on_device = at::TensorOptions(options.device);
  const std::int64_t length = unit_.length() * options.size;
  added_[piece] = true;
  if (local) {
    if (!accumulated_.defined()) accumulated_ = at::zeros({length}, on_device.dtype(at::kFloat));
    piece_in(accumulated_, piece).add_(gradient);
    return;
  }
  if (!sending_.defined()) {
    is_zeroed_ = accumulated_.defined();
    sending_ =
        is_zeroed_ ? std::exchange(accumulated_, {}) : at::empty({length}, on_device.dtype(options.compute));
  }
  const at::Tensor part = piece_in(sending_, piece);
  if (is_zeroed_ || arrived_[piece]) {
    part.add_(gradient);
  } else {
    part.copy_(gradient);
  }
  if (!arrived_[piece]) ++arrived_count_;
  arrived_[piece] = true;
}

void GradientReduction::drop(std::size_t piece) {
  if (!added_[piece]) return;
  const at::NoGradGuard no_grad;
  added_[piece] = false;
  if (arrived_[piece]) --arrived_count_;
  arrived_[piece] = false;
  if (is_empty()) {
    accumulated_.reset();
    sending_.reset();
  }
  for (const at::Tensor& sum : {accumulated_, sending_})
    if (sum.defined()) piece_in(sum, piece).zero_();
}

void GradientReduction::start(ProcessGroup& group, int tag) {
  const at::NoGradGuard no_grad;
  if (!sending_.defined()) {
    sending_ = std::exchange(accumulated_, {});
  } else if (!is_zeroed_) {
    for (std::size_t i = 0; i < arrived_.size(); ++i)
      if (!arrived_[i]) piece_in(sending_, i).zero_();
    for (const auto& [begin, length] : unit_.gaps()) sending_.narrow(0, begin, length).zero_();
  }
  // These were kept after a backward that threw, whose own gradients are in sending_.
  if (accumulated_.defined()) sending_ = std::exchange(accumulated_, {}).add_(sending_);
  if (std::exchange(in_float_, false)) sending_ = sending_.to(at::kFloat);
  added_.assign(added_.size(), false);
  arrived_.assign(arrived_.size(), false);
  arrived_count_ = 0;
  reducing_ = start_reduce_scatter(group, std::exchange(sending_, {}), tag);
}

}  // namespace acc::detail
