// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "acc/runtime/data/data_loader.hpp"
#include "acc/runtime/optim/accelerated_scheduler.hpp"
#include "acc/runtime/optim/grad_scaler.hpp"
#include "acc/runtime/optim/gradients.hpp"
#include "acc/runtime/optim/optimizer.hpp"
#include "acc/runtime/optim/schedulers.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/model.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace acc {

namespace detail {

class ShardedModule;
class ShardedOptimizer;

// The arguments of Accelerator::prepare, by kind.

template <class T>
concept TorchModule = std::is_base_of_v<torch::nn::Module, T>;

/// A module holder, as TORCH_MODULE defines it.
template <class T>
concept TorchModuleHolder = requires { typename T::ContainedType; };

template <class T>
concept TorchOptimizer = std::is_base_of_v<torch::optim::Optimizer, T>;

template <class T>
concept TorchScheduler = std::is_base_of_v<torch::optim::LRScheduler, T>;

/// acc's schedulers, which can be set to an optimizer that was moved.
template <class T>
concept OwnScheduler =
    std::same_as<T, Scheduler> || std::same_as<T, ReduceOnPlateau> || std::same_as<T, GreedyLr>;

template <class T>
concept AnyScheduler = TorchScheduler<T> || OwnScheduler<T>;

template <class T>
struct IsSharedScheduler : std::false_type {};
template <AnyScheduler T>
struct IsSharedScheduler<std::shared_ptr<T>> : std::true_type {};

/// A scheduler or a shared_ptr to one.
template <class T>
concept SchedulerArgument = AnyScheduler<T> || IsSharedScheduler<T>::value;

template <class T>
struct IsPreparable : std::bool_constant<TorchModuleHolder<T> || TorchOptimizer<T> || SchedulerArgument<T> ||
                                         std::same_as<T, Optimizer>> {};
template <class T>
struct IsPreparable<std::shared_ptr<T>>
    : std::bool_constant<TorchModule<T> || TorchOptimizer<T> || AnyScheduler<T>> {};
template <TorchOptimizer T>
struct IsPreparable<std::unique_ptr<T>> : std::true_type {};
template <class Module>
struct IsPreparable<Model<Module>> : std::true_type {};
template <class Dataset>
struct IsPreparable<DataLoader<Dataset>> : std::true_type {};
template <class Native>
struct IsPreparable<AcceleratedScheduler<Native>> : std::true_type {};

/// The arguments of prepare, including prepared objects.
template <class T>
concept Preparable = IsPreparable<std::remove_cvref_t<T>>::value;

}  // namespace detail

/// A model that was prepared.
struct PreparedModel {
  /// Shared with the program.
  std::shared_ptr<torch::nn::Module> module = {};
  /// Null unless the model is replicated, and its gradients are averaged.
  std::shared_ptr<detail::DdpReplica> ddp = {};
  /// Null unless the model is sharded.
  std::shared_ptr<detail::ShardedModule> sharded = {};
};

/// A scheduler of any type. Its state is a JSON object.
struct PreparedScheduler {
  std::function<std::string()> state = {};                ///< Returns the state.
  std::function<void(std::string_view)> load_state = {};  ///< Takes a state.
  /// Returns the optimizer whose rates it sets; empty for LibTorch's own, which keep it to themselves.
  std::function<torch::optim::Optimizer*()> optimizer = {};
};

/// The objects that an Accelerator has prepared, each kind in the order of preparation, and its counters.
/// Checkpoints save them, and free_memory releases them.
struct Prepared {
  std::vector<PreparedModel> models = {};  ///< In the order of preparation.
  std::vector<Optimizer> optimizers = {};  ///< In the order of preparation.
  /// For each of `optimizers` what it has of sharded models; null for an optimizer of none.
  std::vector<std::shared_ptr<detail::ShardedOptimizer>> sharded_optimizers = {};
  std::vector<PreparedScheduler> schedulers = {};  ///< In the order of preparation.
  /// Shared with the loaders.
  std::vector<std::shared_ptr<LoaderPlan>> loaders = {};
  /// The state of gradient accumulation.
  std::shared_ptr<GradientState> gradients = {};
  /// Null unless mixed_precision is fp16.
  std::shared_ptr<GradScaler> scaler = {};
};

}  // namespace acc
