// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>

#include "acc/runtime/optim/schedulers.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace acc {

// What Accelerator::prepare takes, by kind.

template <class T>
concept TorchModule = std::is_base_of_v<torch::nn::Module, T>;

/// LibTorch's holder, as TORCH_MODULE makes it.
template <class T>
concept TorchModuleHolder = requires {
  typename T::ContainedType;
};

template <class T>
concept TorchOptimizer = std::is_base_of_v<torch::optim::Optimizer, T>;

template <class T>
concept TorchScheduler = std::is_base_of_v<torch::optim::LRScheduler, T>;

/// acc's own schedulers, which can follow an optimizer that moves.
template <class T>
concept OwnScheduler = std::same_as<T, Scheduler> || std::same_as<T, ReduceOnPlateau>;

template <class T>
concept AnyScheduler = TorchScheduler<T> || OwnScheduler<T>;

template <class T>
struct IsSharedScheduler : std::false_type {};
template <AnyScheduler T>
struct IsSharedScheduler<std::shared_ptr<T>> : std::true_type {};

/// A scheduler or a shared_ptr to one.
template <class T>
concept SchedulerArgument = AnyScheduler<T> || IsSharedScheduler<T>::value;

}  // namespace acc
