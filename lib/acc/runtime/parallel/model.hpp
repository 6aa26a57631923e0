// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Type.h>

#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "acc/runtime/nested_tensors.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/precision/autocast.hpp"

namespace acc {

/// A module as Accelerator::prepare returns it: its forward runs in the chosen precision, and its gradients
/// are averaged over the processes. `model->` accesses the module itself: train(), eval(), parameters().
template <class Module>
class Model {
 public:
  Model(std::shared_ptr<Module> module, std::shared_ptr<detail::DdpReplica> ddp, MixedPrecision precision,
        c10::DeviceType device = c10::DeviceType::CPU)
      : module_(std::move(module)), ddp_(std::move(ddp)), precision_(precision), device_(device) {}

  /// The module's forward. Throws what DdpReplica::run_forward throws, and Error{usage} in fp16 and bf16 when
  /// forward returns a type that for_each_tensor does not know.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    if (!ddp_) return compute(std::forward<Arguments>(arguments)...);
    return ddp_->run_forward([&] { return compute(std::forward<Arguments>(arguments)...); });
  }

  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }

  Module* operator->() const { return module_.get(); }
  const std::shared_ptr<Module>& module() const { return module_; }  ///< The module that was prepared.
  /// Null if gradients are not averaged.
  const std::shared_ptr<detail::DdpReplica>& ddp() const { return ddp_; }

  /// While the result exists, gradients are accumulated on this process only.
  [[nodiscard]] NoSync no_sync() const { return NoSync(ddp_); }

 private:
  template <class... Arguments>
  auto compute(Arguments&&... arguments) {
    if (precision_ == MixedPrecision::no) return module_->forward(std::forward<Arguments>(arguments)...);
    using Output = std::remove_cvref_t<decltype(module_->forward(std::forward<Arguments>(arguments)...))>;
    if constexpr (detail::kIsOpaque<Output>) detail::refuse_opaque(c10::demangle_type<Output>());
    const Autocast autocast(precision_, device_);
    return detail::to_float32(module_->forward(std::forward<Arguments>(arguments)...));
  }

  std::shared_ptr<Module> module_;
  std::shared_ptr<detail::DdpReplica> ddp_;
  MixedPrecision precision_;
  c10::DeviceType device_;
};

}  // namespace acc
