// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "acc/runtime/accelerator/accelerator_options.hpp"
#include "acc/runtime/accelerator/prepared.hpp"
#include "acc/runtime/data/data_loader.hpp"
#include "acc/runtime/optim/accelerated_scheduler.hpp"
#include "acc/runtime/optim/optimizer.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/model.hpp"
#include "acc/runtime/process/partial_state.hpp"

namespace acc::detail {

class StepChecks;

/// The part of an Accelerator that holds its options and prepares objects for training. See the Accelerator's
/// functions of the same names.
class Preparation {
 public:
  /// See Accelerator's constructor. `state` must outlive this object.
  Preparation(const PartialState& state, AcceleratorOptions options);
  ~Preparation();
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  MixedPrecision mixed_precision() const;
  /// The options, completed by the environment and by defaults that depend on others. A change affects what
  /// is prepared later.
  AcceleratorOptions& options();
  const AcceleratorOptions& options() const;
  /// Whether save_state writes models and optimizers in shards.
  bool saves_shards() const;

  template <class... Objects>
  auto prepare(Objects&&... objects) {
    static_assert((Preparable<Objects> && ...),
                  "prepare takes models (a shared_ptr to a torch::nn::Module, or its TORCH_MODULE holder), "
                  "torch::optim optimizers (with std::move, or a shared_ptr or unique_ptr), acc::DataLoader, "
                  "and schedulers of "
                  "acc and torch::optim");
    if constexpr ((Preparable<Objects> && ...)) {
      // Braces evaluate from left to right: every process prepares in the same order.
      auto first = std::tuple{prepare_first(std::forward<Objects>(objects))...};
      return std::apply(
          [this](auto&... object) {
            if constexpr (sizeof...(Objects) == 1) {
              return (prepare_last(std::move(object)), ...);
            } else {
              return std::tuple{prepare_last(std::move(object))...};
            }
          },
          first);
    }
  }

  struct ModelOptions {
    /// Prepares the model for evaluation: gradients are not averaged, and it may have no trainable
    /// parameters. It is not sharded.
    bool evaluation_mode = false;
  };

  template <TorchModule Module>
  Model<Module> prepare_model(std::shared_ptr<Module> module, const ModelOptions& options) {
    static_assert(!std::same_as<Module, torch::nn::Module>,
                  "prepare a model as the class that has its forward, not as shared_ptr<torch::nn::Module>");
    const std::optional<bool> checkpoints = this->options().activation_checkpointing;
    if (checkpoints == true) enable_activation_checkpointing(*module);
    auto distributed = add_model(module, options);
    return Model<Module>(std::move(module), std::move(distributed), mixed_precision(), state_.device().type(),
                         checkpoints);
  }

  template <TorchOptimizer Native>
  Optimizer prepare_optimizer(Native&& optimizer) {
    const torch::optim::Optimizer* from = &optimizer;
    return add_optimizer(std::make_shared<Native>(std::forward<Native>(optimizer)), from);
  }
  template <TorchOptimizer Native>
  Optimizer prepare_optimizer(std::shared_ptr<Native> optimizer) {
    return add_optimizer(std::move(optimizer), nullptr);
  }

  struct LoaderOptions {
    /// Prepares the loader for evaluation: checkpoints do not contain its position.
    bool evaluation_mode = false;
  };

  template <class Dataset>
  DataLoader<Dataset> prepare_data_loader(DataLoader<Dataset> loader, const LoaderOptions& options) {
    if (is_prepared(loader.plan())) return loader;
    loader.set_plan(add_loader(loader.plan(), DataLoader<Dataset>::kIterable, options));
    loader.set_context(loader_context());
    return loader;
  }

  template <AnyScheduler Native>
  AcceleratedScheduler<Native> prepare_scheduler(std::shared_ptr<Native> scheduler) {
    add_scheduler(scheduler);
    if constexpr (OwnScheduler<Native>) {
      torch::optim::Optimizer& optimizer = moved_optimizer(scheduler->optimizer());
      scheduler->set_optimizer(optimizer);
      return {std::move(scheduler), scheduler_rule(&optimizer)};
    } else {
      return {std::move(scheduler), scheduler_rule(nullptr)};
    }
  }

  Prepared& prepared();
  const Prepared& prepared() const;

  const std::shared_ptr<ActiveLoaders>& active_loaders() const;

  /// Null if there is one process.
  const std::shared_ptr<StepChecks>& step_checks() const;

  /// Null if the prepared model is not sharded.
  std::shared_ptr<ShardedModule> sharded_module(const torch::nn::Module& module) const;

  /// Releases everything that was prepared.
  void release();

 private:
  struct Impl;

  // Prepares everything but schedulers, which depend on the others.
  template <TorchModule Module>
  Model<Module> prepare_first(std::shared_ptr<Module> module) {
    return prepare_model(std::move(module), {});
  }
  template <class Holder>
    requires TorchModuleHolder<std::remove_cvref_t<Holder>>
  auto prepare_first(Holder&& holder) {
    return prepare_model(holder.ptr(), {});
  }
  template <class Module>
  Model<Module> prepare_first(Model<Module> model) {
    return model;
  }
  template <class Dataset>
  DataLoader<Dataset> prepare_first(DataLoader<Dataset> loader) {
    return prepare_data_loader(std::move(loader), {});
  }
  template <class Native>
    requires TorchOptimizer<std::remove_cvref_t<Native>>
  Optimizer prepare_first(Native&& optimizer) {
    static_assert(!std::is_lvalue_reference_v<Native>, "an optimizer is given with std::move");
    return prepare_optimizer(std::forward<Native>(optimizer));
  }
  template <TorchOptimizer Native>
  Optimizer prepare_first(std::shared_ptr<Native> optimizer) {
    return prepare_optimizer(std::move(optimizer));
  }
  template <TorchOptimizer Native>
  Optimizer prepare_first(std::unique_ptr<Native> optimizer) {
    return prepare_optimizer(std::shared_ptr<Native>(std::move(optimizer)));
  }
  Optimizer prepare_first(Optimizer optimizer) { return optimizer; }
  template <SchedulerArgument Native>
  Native prepare_first(Native scheduler) {
    return scheduler;
  }
  template <class Native>
  AcceleratedScheduler<Native> prepare_first(AcceleratedScheduler<Native> scheduler) {
    return scheduler;
  }

  template <class Object>
  Object prepare_last(Object object) {
    return object;
  }
  template <AnyScheduler Native>
  AcceleratedScheduler<Native> prepare_last(Native scheduler) {
    return prepare_scheduler(std::make_shared<Native>(std::move(scheduler)));
  }
  template <AnyScheduler Native>
  AcceleratedScheduler<Native> prepare_last(std::shared_ptr<Native> scheduler) {
    return prepare_scheduler(std::move(scheduler));
  }

  std::shared_ptr<DistributedModule> add_model(std::shared_ptr<torch::nn::Module> module,
                                               const ModelOptions& options);
  // Gives an optimizer the shards of the models whose parameters it has; null if none of them is sharded.
  std::shared_ptr<ShardedOptimizer> sharded_optimizer(torch::optim::Optimizer& native) const;
  Optimizer add_optimizer(std::shared_ptr<torch::optim::Optimizer> native,
                          const torch::optim::Optimizer* from);
  std::shared_ptr<LoaderPlan> add_loader(const LoaderPlan& plan, bool iterable, const LoaderOptions& options);
  LoaderContext loader_context() const;
  void add_scheduler(const std::shared_ptr<torch::optim::LRScheduler>& scheduler);
  template <OwnScheduler Native>
  void add_scheduler(const std::shared_ptr<Native>& scheduler) {
    prepared().schedulers.push_back(
        {.state = [scheduler] { return scheduler->state(); },
         .load_state = [scheduler](std::string_view state) { scheduler->load_state(state); },
         .optimizer = [scheduler] { return &scheduler->optimizer(); }});
  }
  bool is_prepared(const LoaderPlan& plan) const;
  torch::optim::Optimizer& moved_optimizer(torch::optim::Optimizer& optimizer) const;
  SchedulerRule scheduler_rule(const torch::optim::Optimizer* optimizer) const;

  const PartialState& state_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::detail
