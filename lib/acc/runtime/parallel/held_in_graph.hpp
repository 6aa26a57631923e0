// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/ivalue.h>

#include <utility>

namespace acc {

/// A value of any type as an autograd graph keeps it, in AutogradContext::saved_data.
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

}  // namespace acc
