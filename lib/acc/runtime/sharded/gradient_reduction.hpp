// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "acc/runtime/comm/flat_transfer.hpp"
#include "acc/runtime/comm/process_group.hpp"
#include "acc/runtime/sharded/unit.hpp"

namespace acc::detail {

/// Collects the gradients of a unit's parameters in one buffer, and averages it over the processes, each of
/// which gets the mean of its shard.
class GradientReduction {
 public:
  explicit GradientReduction(const Unit& unit);

  /// Adds the gradient of a piece. `local`: it is kept for a later backward, in float32.
  void add(std::size_t piece, const at::Tensor& gradient, bool local);
  /// The next average is in float32, whether gradients are kept here or not: all processes send one type.
  void average_in_float() { in_float_ = true; }
  /// Forgets the gradient of a piece, unless its average has been started.
  void drop(std::size_t piece);

  /// Whether all pieces that train have gradients that are not kept.
  bool is_complete() const { return trained_ > 0 && arrived_count_ == trained_; }
  /// Whether there is nothing to average.
  bool is_empty() const { return std::ranges::find(added_, true) == added_.end(); }
  /// Which pieces have a gradient to average.
  const std::vector<bool>& pieces() const { return added_; }

  /// Starts to average what was added. Pieces that have no gradient here count as zero.
  void start(ProcessGroup& group, int tag);
  bool is_started() const { return static_cast<bool>(reducing_); }
  /// Waits, and returns the mean gradients of the shard.
  at::Tensor finish() { return reducing_.finish(); }

 private:
  at::Tensor piece_in(const at::Tensor& flat, std::size_t piece) const;

  const Unit& unit_;
  std::size_t trained_ = 0;
  // The pieces that got a gradient since the last start.
  std::vector<bool> added_ = {};
  // Those of them with one that is not kept, and their number.
  std::vector<bool> arrived_ = {};
  std::size_t arrived_count_ = 0;
  // The sum of gradients of backwards that did not average.
  at::Tensor accumulated_ = {};
  // What is averaged next, and whether its pieces without gradient are zero.
  at::Tensor sending_ = {};
  bool is_zeroed_ = false;
  bool in_float_ = false;
  FlatReduction reducing_ = {};
};

}  // namespace acc::detail
