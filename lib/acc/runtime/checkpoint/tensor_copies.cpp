// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/tensor_copies.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <variant>

#include "acc/runtime/checkpoint/two_threads.hpp"

namespace acc::detail {

void TensorCopies::replace_in(Safetensors& content) {
  for (auto& [name, tensor] : content.tensors) replace(tensor);
}

void TensorCopies::replace_in(PtValue& value) {
  if (auto* tensor = std::get_if<at::Tensor>(&value.content)) return replace(*tensor);
  if (auto* list = std::get_if<PtList>(&value.content)) {
    for (PtValue& item : *list) replace_in(item);
  } else if (auto* tuple = std::get_if<PtTuple>(&value.content)) {
    for (PtValue& item : tuple->items) replace_in(item);
  } else if (auto* dict = std::get_if<PtDict>(&value.content)) {
    for (PtEntry& entry : *dict) replace_in(entry.value);
  }
}

void TensorCopies::finish() {
  on_two_threads(on_cpu_.size(), [&](std::size_t i) { on_cpu_[i].copy.copy_(on_cpu_[i].original); });
  on_cpu_.clear();
  for (const auto& [type, index] : devices_)
    c10::impl::VirtualGuardImpl(type).getStream({type, index}).synchronize();
  devices_.clear();
  buffers_.resize(next_);
}

void TensorCopies::replace(at::Tensor& tensor) {
  const at::Tensor original = tensor.detach();
  tensor = memory_for(original);
  if (original.is_cpu()) {
    on_cpu_.push_back({.original = original, .copy = tensor});
  } else {
    tensor.copy_(original, /*non_blocking=*/true);
    devices_.insert({original.device().type(), original.device().index()});
  }
}

const at::Tensor& TensorCopies::memory_for(const at::Tensor& tensor) {
  if (next_ == buffers_.size()) buffers_.emplace_back();
  at::Tensor& memory = buffers_[next_++];
  const bool pinned = !tensor.is_cpu();
  const bool fits = memory.defined() && memory.scalar_type() == tensor.scalar_type() &&
                    memory.sizes() == tensor.sizes() && memory.is_pinned() == pinned;
  if (!fits) {
    memory.reset();
    memory = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(pinned));
  }
  return memory;
}

}  // namespace acc::detail
