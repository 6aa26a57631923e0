// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace acc {

/// Which of the trained parameters, by index, have their gradients averaged in one message, and in which
/// order.
using BucketLayout = std::vector<std::vector<std::size_t>>;

/// How gradients travel: as they are, or rounded to half the size on the way (each process divides its own by
/// the number of processes first, as Python's fp16_compress_hook and bf16_compress_hook do).
enum class CommHook { none, fp16, bf16 };

/// Tuning of data parallelism; the defaults are those of Python's DistributedDataParallel.
struct DdpOptions {
  /// Gradients travel in buckets of this size while backward still runs. Default: 25 with a first one of 1.
  std::optional<double> bucket_cap_mb = {};
  /// Rank 0's buffers (running means of batch norms) go to all before each forward.
  bool broadcast_buffers = true;
  /// Gradients live in the buckets: saves a copy of the gradients in memory and time.
  bool gradient_as_bucket_view = false;
  /// Looks in each forward for the parameters that its output does not depend on, and does not wait for
  /// their gradients. Costs a walk through the graph in each step: only for models with such parameters.
  bool find_unused_parameters = false;
  /// Promises that each step uses the same parameters in the same way. The first step then finds the unused
  /// ones once and for all, and a parameter may be used several times in one backward (checkpointing).
  bool static_graph = false;
  CommHook comm_hook = CommHook::none;
};

}  // namespace acc
