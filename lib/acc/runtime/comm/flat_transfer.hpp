// SPDX-License-Identifier: Apache-2.0
// Collective operations on flat buffers that are divided evenly among the processes, in rank order. On CPUs
// they go through the memory that all processes share, or Gloo sends from the buffers and receives into them.
// Each returns at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "acc/runtime/comm/process_group.hpp"

namespace acc::detail {

/// An operation under way. Copies refer to the same one. Waiting throws LibTorch's exceptions.
class FlatTransfer {
 public:
  FlatTransfer() = default;

  /// Whether it has been started and not been forgotten.
  explicit operator bool() const { return flight_ != nullptr; }

  /// Returns when the parts of the other processes have arrived.
  void wait_received();
  /// Returns when this process's part has left: its memory may be changed or freed.
  void wait_sent();

  struct Flight;  ///< What waits.
  explicit FlatTransfer(std::shared_ptr<Flight> flight) : flight_(std::move(flight)) {}

 private:
  std::shared_ptr<Flight> flight_ = {};
};

/// An exchange of which the results are added.
class FlatReduction {
 public:
  FlatReduction() = default;
  explicit operator bool() const { return parts_.defined(); }

  /// Waits, and returns the mean of what all processes sent to this one: a float32 tensor, added in rank
  /// order. To be called once.
  at::Tensor finish();

 private:
  friend FlatReduction start_reduce_scatter(ProcessGroup& group, at::Tensor flat, int tag);

  FlatTransfer transfer_ = {};
  // On CPUs what was sent, whose own part is this process's, and what the others sent; else the sum.
  at::Tensor flat_ = {};
  at::Tensor parts_ = {};
  int rank_ = 0;
  int size_ = 1;
  bool is_summed_ = false;
};

/// Starts to fill `flat` with the parts of all processes. `own_part`, a contiguous tensor, is this process's
/// part, which is in `flat` already. All processes begin their transfers in the same order; over Gloo, those
/// with the same `tag`.
FlatTransfer start_all_gather(ProcessGroup& group, const at::Tensor& flat, const at::Tensor& own_part,
                              int tag);

/// Starts to give each process the mean of its part of the `flat`s of all. Parts travel in the type of `flat`
/// and are added in float32.
FlatReduction start_reduce_scatter(ProcessGroup& group, at::Tensor flat, int tag);

}  // namespace acc::detail
