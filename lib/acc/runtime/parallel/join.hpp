// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/model.hpp"

namespace acc {

/// What Accelerator::join_uneven_inputs takes.
struct JoinOptions {
  /// For the loaders that are prepared already. Default: as they are, and AcceleratorOptions::even_batches.
  std::optional<bool> even_batches = {};
  /// Gradients are divided by the number of all processes, else by that of those which still have batches.
  bool divide_by_initial_world_size = true;
};

/// A model as join_uneven_inputs takes it.
class Joinable {
 public:
  template <class Module>
  Joinable(const Model<Module>& model) : ddp_(model.ddp()) {}  // NOLINT: implicit, as in {model}
  template <class Module>
  Joinable(const Ddp<Module>& model) : ddp_(model.replica()) {}  // NOLINT: the same

  const std::shared_ptr<detail::DdpReplica>& ddp() const { return ddp_; }

 private:
  std::shared_ptr<detail::DdpReplica> ddp_;
};

/// Together: calls `train`, in which processes may train on different numbers of batches, as Python's Join. A
/// process whose `train` returns has run out of batches: it adds gradients of zero to the steps of the others
/// until all have returned. The models are then those of the processes that were last. In `train` the
/// processes do nothing together but, in each step, forward and backward of the first model, then of the
/// second and so on. An exception of `train` passes through at once, without waiting for the others. Throws
/// Error{system} when another process is lost. Without effect for models of a single process.
void join_uneven_inputs(const std::vector<Joinable>& models, const std::function<void()>& train,
                        bool divide_by_initial_world_size = true);

}  // namespace acc
