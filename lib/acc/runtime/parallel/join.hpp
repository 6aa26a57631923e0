// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/model.hpp"

namespace acc {

/// The options of Accelerator::join_uneven_inputs.
struct JoinOptions {
  /// Overrides even_batches of the prepared loaders during the call. Default: the loaders are not changed,
  /// and AcceleratorOptions::even_batches tells whether inputs may be uneven.
  std::optional<bool> even_batches = {};
  /// Divides gradients by the number of all processes; if false, by the number of those that still have
  /// batches.
  bool divide_by_initial_world_size = true;
};

/// A Model or Ddp, as an argument of join_uneven_inputs.
class Joinable {
 public:
  template <class Module>
  Joinable(const Model<Module>& model)
      : distributed_(model.distributed()) {}  // NOLINT: implicit, as in {model}
  template <class Module>
  Joinable(const Ddp<Module>& model) : distributed_(model.replica()) {}  // NOLINT: the same

  /// Null for one process.
  const std::shared_ptr<detail::DistributedModule>& distributed() const { return distributed_; }

 private:
  std::shared_ptr<detail::DistributedModule> distributed_;
};

/// Together: calls `train`, in which processes may train on different numbers of batches, as Python's Join. A
/// process whose `train` has returned contributes gradients of zero to the steps of the others until all have
/// returned; then all take the models of a process that was among the last. The optimizers' states and the
/// scale of fp16 stay what they are on each process, as in Python: the next steps may differ where they
/// depend on them, as with momentum. In `train` the only collective operations may be forward and backward of
/// the first model, then of the second and so on, in each step. An exception of `train` passes through at
/// once, without waiting for the others. Throws Error{system} when another process is lost, Error{usage} for
/// a sharded model and for synchronized batch norms in training, whose forward waits for all processes. With
/// a single process it just calls `train`.
void join_uneven_inputs(const std::vector<Joinable>& models, const std::function<void()>& train,
                        bool divide_by_initial_world_size = true);

}  // namespace acc
