// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Type.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "acc/runtime/comm/progress.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/precision/autocast.hpp"
#include "acc/runtime/recomputation/checkpoint_switch.hpp"
#include "acc/runtime/tensors/nested_tensors.hpp"

namespace acc {

namespace detail {

/// An argument of forward, as it is or, if it has tensors and `converts`, a copy with what `convert` returns
/// for each of them.
template <class Argument>
class InputOf {
 public:
  template <class Convert>
  InputOf(Argument&& given, bool converts, const Convert& convert) : given_(std::forward<Argument>(given)) {
    if constexpr (kHasTensors) {
      if (!converts) return;
      converted_.emplace(given_);
      for_each_tensor(*converted_, [&](at::Tensor& tensor) { tensor = convert(tensor); });
    }
  }
  Argument&& value() {
    if constexpr (kHasTensors) {
      if (converted_) return static_cast<Argument&&>(*converted_);
    }
    return std::forward<Argument>(given_);
  }

 private:
  using Structure = std::remove_cvref_t<Argument>;
  static constexpr bool kIsConst = std::is_const_v<std::remove_reference_t<Argument>>;
  // What forward may change remains the caller's.
  static constexpr bool kHasTensors =
      kCopiesTensors<Structure> &&
      (std::is_same_v<Structure, at::Tensor> || kIsConst || !std::is_lvalue_reference_v<Argument>);
  struct Nothing {};

  Argument&& given_;
  std::optional<std::conditional_t<kHasTensors, Structure, Nothing>> converted_ = {};
};

}  // namespace detail

/// A module as Accelerator::prepare returns it: its forward runs in the chosen precision, and its gradients
/// are averaged over the processes. `model->` accesses the module itself: train(), eval(), parameters().
template <class Module>
class Model {
 public:
  Model(std::shared_ptr<Module> module, std::shared_ptr<detail::DistributedModule> distributed,
        MixedPrecision precision, c10::DeviceType device = c10::DeviceType::CPU,
        std::optional<bool> activation_checkpointing = {})
      : module_(std::move(module)),
        distributed_(std::move(distributed)),
        precision_(precision),
        device_(device),
        activation_checkpointing_(activation_checkpointing),
        must_checkpoint_(activation_checkpointing == true) {}

  /// The module's forward. Throws what run_forward of DdpReplica or ShardedModule throws, and Error{usage} in
  /// fp16 and bf16 when forward returns a type that for_each_tensor does not know, and when activation
  /// checkpointing is on but the first forward of the training does not call acc::checkpoint.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    constexpr bool kTakes =
        requires(Module& module) { module.forward(std::forward<Arguments>(arguments)...); };
    static_assert(kTakes, "the module has no forward that takes these arguments");
    if constexpr (kTakes) {
      const ProgressSection section(is_training() ? Section::forward : Section::evaluation);
      const detail::CheckpointSwitch checkpoints(activation_checkpointing_);
      const auto run = [&] { return compute(std::forward<Arguments>(arguments)...); };
      auto output = distributed_ ? distributed_->run_forward(run) : run();
      require_checkpoint(checkpoints);
      return output;
    }
  }

  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }

  Module* operator->() const { return module_.get(); }
  const std::shared_ptr<Module>& module() const { return module_; }  ///< The module that was prepared.
  /// Null if gradients are not averaged.
  const std::shared_ptr<detail::DistributedModule>& distributed() const { return distributed_; }
  /// Null unless the model is replicated.
  std::shared_ptr<detail::DdpReplica> ddp() const {
    return std::dynamic_pointer_cast<detail::DdpReplica>(distributed_);
  }

  /// While the result exists, gradients are accumulated on this process only.
  [[nodiscard]] NoSync no_sync() const { return NoSync(distributed_); }

  /// The same model, to be called while all its weights have this floating-point type: what forward takes is
  /// converted to it, but for lists that forward may change and for the last argument if this one has the
  /// labels, and what it returns to float32.
  Model with_weights_type(at::ScalarType type, bool last_are_labels) const {
    Model model = *this;
    model.weights_type_ = type;
    model.last_are_labels_ = last_are_labels;
    return model;
  }

 private:
  bool is_training() const {
    if constexpr (requires { module_->is_training(); }) return module_->is_training();
    return true;
  }

  // A module with a switch of its own may compute again by other means.
  void require_checkpoint(const detail::CheckpointSwitch& checkpoints) {
    if constexpr (!detail::HasCheckpointSwitch<Module>) {
      if (!must_checkpoint_ || !is_training() || !at::GradMode::is_enabled()) return;
      checkpoints.require_calls(c10::demangle_type<Module>());
      must_checkpoint_ = false;
    }
  }

  template <class... Arguments>
  auto compute(Arguments&&... arguments) {
    if (precision_ == MixedPrecision::no && !weights_type_)
      return module_->forward(std::forward<Arguments>(arguments)...);
    using Output = std::remove_cvref_t<decltype(module_->forward(std::forward<Arguments>(arguments)...))>;
    if constexpr (detail::kIsOpaque<Output>) detail::refuse_opaque(c10::demangle_type<Output>());
    const Autocast autocast(precision_, device_);
    // As fully_shard, converts inputs where the parameters themselves are bf16.
    const at::ScalarType type = weights_type_  ? *weights_type_
                                : distributed_ ? distributed_->compute_type()
                                               : at::kFloat;
    [[maybe_unused]] const auto convert = [&](const at::Tensor& tensor) {
      const bool fits = weights_type_ ? !at::isFloatingType(tensor.scalar_type())  // such as indices
                                      : tensor.scalar_type() != at::kFloat;
      return fits ? tensor : tensor.to(type);
    };
    [[maybe_unused]] const auto converts = [&](std::size_t index) {
      const bool is_labels = last_are_labels_ && index + 1 == sizeof...(Arguments);
      return weights_type_ ? !is_labels : type != at::kFloat;
    };
    return [&]<std::size_t... I>(std::index_sequence<I...> /*arguments*/) {
      return detail::to_float32(module_->forward(
          detail::InputOf<Arguments>(std::forward<Arguments>(arguments), converts(I), convert).value()...));
    }(std::index_sequence_for<Arguments...>());
  }

  std::shared_ptr<Module> module_;
  std::shared_ptr<detail::DistributedModule> distributed_;
  MixedPrecision precision_;
  c10::DeviceType device_;
  std::optional<bool> activation_checkpointing_;
  // Until the first forward of the training.
  bool must_checkpoint_;
  std::optional<at::ScalarType> weights_type_ = {};
  bool last_are_labels_ = false;
};

}  // namespace acc
