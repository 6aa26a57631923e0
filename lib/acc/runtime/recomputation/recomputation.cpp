// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/recomputation/recomputation.hpp"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <string>
#include <utility>

#include "acc/base/error.hpp"

namespace acc::detail {

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

struct DroppedTensor {
  struct Description {
    std::vector<std::int64_t> shape = {};
    at::ScalarType type = at::kFloat;
    at::Device device = at::kCPU;

    bool operator==(const Description&) const = default;
  };

  Description description = {};
  // Its memory and version in the first pass; memory that the function made has been freed since then.
  WeakStorage first_memory;
  std::int64_t first_version = 0;
  // From the second pass until backward takes it, and its version when it was saved.
  at::Tensor value = {};
  std::int64_t version = 0;
};

namespace {

// Ends a second pass that has computed all that is needed.
struct Complete : std::exception {};

[[noreturn]] void refuse(std::string what, std::string hint) {
  throw Error({.what = std::move(what), .where = "acc::checkpoint", .hint = std::move(hint)});
}

[[noreturn]] void refuse_difference(std::string what) {
  refuse("when it was called again in backward, the function " + std::move(what),
         "it must compute the same both times: keep train() and eval(), and all that it reads, as they were");
}

[[noreturn]] void refuse_changed_input(std::size_t index, std::string_view who) {
  refuse(fmt::format("tensor {} of the inputs was changed in place {}", index, who),
         "change a copy: input.clone()");
}

std::string text_of(const DroppedTensor::Description& tensor) {
  return fmt::format("{} [{}] on {}", c10::toString(tensor.type), fmt::join(tensor.shape, ", "),
                     tensor.device.str());
}

DroppedTensor::Description describe(const at::Tensor& tensor) {
  return {.shape = tensor.sizes().vec(), .type = tensor.scalar_type(), .device = tensor.device()};
}

std::int64_t version_of(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_inference() ? tensor._version() : 0;
}

WeakStorage memory_of(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return WeakStorage(c10::intrusive_ptr<c10::StorageImpl>());
  return WeakStorage(tensor.storage().getWeakStorageImpl());
}

std::vector<std::int64_t> versions_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::int64_t> versions;
  for (const at::Tensor& tensor : tensors) versions.push_back(version_of(tensor));
  return versions;
}

at::Tensor unpack_input(const torch::autograd::SavedVariable& input, std::size_t index) {
  // Hooks are those of a function around this one, whose exceptions are not about this input.
  if (input.has_hooks()) return input.unpack();
  try {
    return input.unpack();
  } catch (const c10::Error&) {
    refuse_changed_input(index, "between forward and backward");
  }
}

}  // namespace

Recomputation::Recomputation(const std::vector<at::Tensor>& inputs, Replay replay)
    : replay_(std::move(replay)), state_(forward_state(inputs)) {
  inputs_.reserve(inputs.size());
  for (const at::Tensor& input : inputs) inputs_.emplace_back(input, /*is_output=*/false);
}

Pack Recomputation::pack() {
  return [self = shared_from_this()](const at::Tensor& tensor) -> Unpack {
    const auto dropped = std::make_shared<DroppedTensor>(DroppedTensor{.description = describe(tensor),
                                                                       .first_memory = memory_of(tensor),
                                                                       .first_version = version_of(tensor)});
    self->dropped_.push_back(dropped);
    return [self, dropped] { return self->take(*dropped); };
  };
}

at::Tensor Recomputation::take(DroppedTensor& tensor) {
  const std::scoped_lock lock(mutex_);
  if (!tensor.value.defined()) run();
  // Python does not notice this, and computes with the changed values.
  if (version_of(tensor.value) != tensor.version)
    refuse("a tensor that backward needs was changed in place by the function",
           "change a copy: y = y + x instead of y += x");
  return std::exchange(tensor.value, {});
}

std::vector<at::Tensor> Recomputation::inputs() const {
  std::vector<at::Tensor> inputs;
  for (const auto& input : inputs_) inputs.push_back(unpack_input(input, inputs.size()));
  return inputs;
}

void Recomputation::run() {
  const std::vector<at::Tensor> inputs = this->inputs();
  std::size_t count = 0;
  const SavedTensorHooks hooks([&](const at::Tensor& tensor) -> Unpack {
    at::Tensor value = tensor.detach();  // from the graph of this pass
    if (count < dropped_.size()) keep(count, value);
    if (++count >= dropped_.size()) throw Complete();
    return [value] { return value; };
  });
  const RestoredForwardState state(state_);
  const at::AutoGradMode with_graph(true);
  try {
    replay_(inputs);
  } catch (...) {
    // Complete, or what the function made of it, as TorchScript's interpreter does.
    if (count < dropped_.size()) throw;
  }
  if (count < dropped_.size())
    refuse_difference(fmt::format("saved {} tensors for backward, not {}", count, dropped_.size()));
}

void Recomputation::keep(std::size_t index, const at::Tensor& tensor) const {
  const auto dropped = dropped_[index].lock();
  if (!dropped) return;
  const DroppedTensor::Description present = describe(tensor);
  if (present != dropped->description)
    refuse_difference(
        fmt::format("saved {} in place of {}", text_of(present), text_of(dropped->description)));
  // Without a checkpoint LibTorch notices this. Python's does not, and computes with the changed values.
  if (memory_of(tensor) == dropped->first_memory && version_of(tensor) != dropped->first_version)
    refuse(fmt::format("{}, which the function reads, was changed in place after its first call, or by it",
                       text_of(present)),
           "change it after backward, or give the function a copy: tensor.clone()");
  dropped->value = tensor;
  dropped->version = version_of(tensor);
}

FirstPass::FirstPass(std::vector<at::Tensor> inputs, Replay replay)
    : inputs_(std::move(inputs)),
      versions_(versions_of(inputs_)),
      hooks_(std::make_shared<Recomputation>(inputs_, std::move(replay))->pack()) {}

void FirstPass::require_unchanged_inputs() const {
  const std::vector<std::int64_t> versions = versions_of(inputs_);
  for (std::size_t i = 0; i < versions.size(); ++i)
    if (versions[i] != versions_[i]) refuse_changed_input(i, "by the function");
}

}  // namespace acc::detail
