// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace torch::autograd {

/// Every torch::autograd::Function contains the address of this function. Newer versions of LibTorch lack it:
/// if it were a strong symbol, the dynamic linker would end the program before require_compiled_torch can
/// report which version is needed. As a weak symbol it is null there; it is never called.
[[gnu::weak]] void deleteNode(Node* function);  // NOLINT(readability-redundant-declaration): but weak

}  // namespace torch::autograd

namespace acc::detail {

/// Stores a value of any type in an autograd graph, in AutogradContext::saved_data.
template <class Value>
class HeldInGraph : public torch::CustomClassHolder {
 public:
  explicit HeldInGraph(Value value) : value_(std::move(value)) {}

  static c10::IValue hold(Value value) {
    return c10::IValue::make_capsule(c10::make_intrusive<HeldInGraph>(std::move(value)));
  }
  static const Value& held(const c10::IValue& capsule) {
    return static_cast<const HeldInGraph&>(*capsule.toCapsule()).value_;
  }

 private:
  Value value_;
};

}  // namespace acc::detail
