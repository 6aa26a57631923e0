// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/recomputation/checkpoint_switch.hpp"

#include <ATen/core/grad_mode.h>

#include <string>

#include "acc/base/error.hpp"

namespace acc::detail {
namespace {

thread_local bool is_on = true;
thread_local std::size_t calls = 0;

}  // namespace

CheckpointSwitch::CheckpointSwitch(std::optional<bool> on) : was_on_(is_on), calls_before_(calls) {
  is_on = on.value_or(was_on_);
}

CheckpointSwitch::~CheckpointSwitch() {
  is_on = was_on_;
}

void CheckpointSwitch::require_calls(std::string_view module) const {
  if (calls > calls_before_) return;
  throw Error({.what = "activation checkpointing is on, but nothing in forward calls acc::checkpoint",
               .where = std::string(module),
               .hint = "call the blocks of the model by it: x = acc::checkpoint(block, x)"});
}

bool computes_again() {
  ++calls;
  return is_on && at::GradMode::is_enabled();
}

}  // namespace acc::detail
