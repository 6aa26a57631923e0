// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "acc/runtime/parallel/process_group.hpp"

namespace torch::nn {
class Module;
}

namespace acc {

/// Tuning of data parallelism; the defaults are those of Python's DistributedDataParallel.
struct DdpOptions {
  /// Gradients travel in buckets of this size while backward still runs. Default: 25 with a first one of 1.
  std::optional<double> bucket_cap_mb = {};
  /// Rank 0's buffers (running means of batch norms) go to all before each forward.
  bool broadcast_buffers = true;
  /// Gradients live in the buckets: saves a copy of the gradients in memory and time.
  bool gradient_as_bucket_view = false;
};

/// Keeps the copies of a module on all processes equal: averages gradients while backward runs, as Python's
/// DistributedDataParallel and with the same numbers. The module's forward is called between before_forward
/// and after_forward.
class Ddp {
 public:
  /// Copies rank 0's parameters and buffers to all. Throws Error{usage} on every rank, naming the first
  /// parameter that is not the same (name, shape, type) everywhere, and when no parameter needs a gradient.
  Ddp(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group,
      DdpOptions options = {});
  ~Ddp();
  Ddp(const Ddp&) = delete;
  Ddp& operator=(const Ddp&) = delete;

  /// Throws Error{usage} when the step before left parameters without a gradient.
  void before_forward();
  void after_forward();

  bool synchronizes() const;
  void set_synchronizes(bool on);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// While it lives, backward adds up gradients on this process alone: for all but the last of the batches
/// whose gradients are accumulated. It covers forward and backward.
class NoSync {
 public:
  explicit NoSync(std::shared_ptr<Ddp> ddp) : ddp_(std::move(ddp)) {
    if (!ddp_) return;
    was_on_ = ddp_->synchronizes();
    ddp_->set_synchronizes(false);
  }
  ~NoSync() {
    if (ddp_) ddp_->set_synchronizes(was_on_);
  }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  std::shared_ptr<Ddp> ddp_;
  bool was_on_ = true;
};

}  // namespace acc
