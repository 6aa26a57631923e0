// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/data/data_loader.hpp"
#include "acc/runtime/optim/gradient_state.hpp"
#include "acc/runtime/optim/optimizer.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/precision/grad_scaler.hpp"

namespace acc {

struct PreparedModel {
  std::shared_ptr<torch::nn::Module> module = {};
  /// Null where nothing is averaged.
  std::shared_ptr<DdpReplica> ddp = {};
};

/// A scheduler, whatever its type: its state is a JSON object.
struct PreparedScheduler {
  std::function<std::string()> state = {};
  std::function<void(std::string_view)> load_state = {};
};

/// Everything that an Accelerator prepared, of each kind in the order of preparation, and what it counts:
/// what a checkpoint saves and free_memory lets go.
struct Prepared {
  std::vector<PreparedModel> models = {};
  std::vector<Optimizer> optimizers = {};
  std::vector<PreparedScheduler> schedulers = {};
  /// Shared with the loaders: a change here is one there.
  std::vector<std::shared_ptr<LoaderPlan>> loaders = {};
  /// The accumulation's step is in it.
  std::shared_ptr<GradientState> gradients = {};
  /// Null unless the precision is fp16.
  std::shared_ptr<GradScaler> scaler = {};
};

}  // namespace acc
