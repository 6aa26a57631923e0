// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/model.hpp"

namespace acc {

struct JoinedStep;

/// What Accelerator::join_uneven_inputs takes.
struct JoinOptions {
  /// For the loaders that are prepared already. Default: as they are, and AcceleratorOptions::even_batches.
  std::optional<bool> even_batches = {};
  /// Gradients are divided by the number of all processes, else by that of those which still have batches.
  bool divide_by_initial_world_size = true;
};

/// A model as Join takes it.
class Joinable {
 public:
  template <class Module>
  Joinable(const Model<Module>& model) : ddp_(model.ddp()) {}  // NOLINT: implicit, as in join({model})

  const std::shared_ptr<DdpReplica>& ddp() const { return ddp_; }

 private:
  std::shared_ptr<DdpReplica> ddp_;
};

/// Lets processes train on different numbers of batches, as Python's Join: while it lives, a process that has
/// run out of batches adds gradients of zero to the steps of the others. Its end, where the process arrives
/// when it has run out, returns when all have; the models are then those of the processes that were last.
/// Meanwhile the processes do nothing together but, in each step, forward and backward of the first model,
/// then of the second and so on. Without effect for models of a single process.
class Join {
 public:
  /// `divide_by_initial_world_size`: gradients are divided by the number of all processes, else by that of
  /// the processes which still have data. `at_end` is called when it ends, in whatever way.
  explicit Join(const std::vector<Joinable>& models, bool divide_by_initial_world_size = true,
                std::function<void()> at_end = {});

  /// Waits for the others, unless an exception is on its way: then it leaves them alone. Throws Error{system}
  /// when one is lost.
  ~Join() noexcept(false);
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

 private:
  void wait_for_others();

  std::vector<std::shared_ptr<DdpReplica>> models_ = {};
  std::shared_ptr<JoinedStep> step_ = {};
  std::function<void()> at_end_ = {};
  int exceptions_before_ = 0;
};

}  // namespace acc
