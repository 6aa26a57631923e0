// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "acc/runtime/data/active_loaders.hpp"
#include "acc/runtime/data/dispatcher.hpp"

namespace acc {

/// What a prepared loader uses of its job.
struct LoaderJob {
  /// Where loaders tell that they are being read.
  std::shared_ptr<ActiveLoaders> active = std::make_shared<ActiveLoaders>();
  /// Where batches are put.
  at::Device device = at::Device(at::kCPU);
  /// Called at the start of each pass, on every process; a restored one was started in another run.
  std::function<void()> before_pass = {};
  /// For loaders that rank 0 reads for all.
  Broadcast broadcast = {};
};

}  // namespace acc
