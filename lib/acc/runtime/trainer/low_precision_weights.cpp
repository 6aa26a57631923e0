// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/low_precision_weights.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/where.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/module.h>

#include <memory>

#include "acc/base/error.hpp"
#include "acc/runtime/modules/compiled_model.hpp"
#include "acc/runtime/sharded/sharded_gradients.hpp"
#include "acc/runtime/tensors/nested_tensors.hpp"

namespace acc::detail {
namespace {

// As set_data, which with another type makes autograd forget the hooks that average the gradient.
void set_values(const at::Tensor& tensor, const at::Tensor& values) {
  tensor.unsafeGetTensorImpl()->shallow_copy_from(values.getIntrusivePtr());
}

bool is_float(const at::Tensor& tensor) {
  return tensor.defined() && at::isFloatingType(tensor.scalar_type());
}

// Counts writes. Tensors that were made in an inference mode do not count theirs.
std::uint32_t version_of(const at::Tensor& tensor) {
  const c10::VariableVersion& version = tensor.unsafeGetTensorImpl()->version_counter();
  return version.enabled() ? version.current_version() : 0;
}

}  // namespace

LowPrecisionWeights::LowPrecisionWeights(torch::nn::Module& module, at::ScalarType type)
    : module_(module), type_(type) {
  const c10::InferenceMode normal(false);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors = module.parameters();
  for (const auto& buffer : module.named_buffers()) {
    tensors.push_back(buffer.value());
    if (is_float(buffer.value())) buffer_types_.emplace(buffer.key(), buffer.value().scalar_type());
  }
  keep_distinct(tensors);
  std::vector<at::Tensor> converted;
  for (const at::Tensor& tensor : tensors) {
    if (!is_float(tensor) || tensor.scalar_type() == type) continue;
    weights_.push_back({.tensor = tensor, .own = tensor.detach(), .version = 0});
    converted.push_back(tensor.detach().to(type));
  }
  // From here on nothing throws.
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    set_values(weights_[i].tensor, converted[i]);
    weights_[i].version = version_of(weights_[i].tensor);
  }
}

LowPrecisionWeights::~LowPrecisionWeights() {
  const c10::InferenceMode normal(false);
  const at::NoGradGuard no_grad;
  for (const Weight& weight : weights_) set_values(weight.tensor, weight.own);
  // A script may have assigned another tensor to a buffer.
  for (const auto& buffer : module_.named_buffers()) {
    const auto type = buffer_types_.find(buffer.key());
    if (type != buffer_types_.end() && is_float(buffer.value()) &&
        buffer.value().scalar_type() != type->second)
      set_values(buffer.value(), buffer.value().detach().to(type->second));
  }
}

void LowPrecisionWeights::keep_changes() {
  const c10::InferenceMode normal(false);
  const at::NoGradGuard no_grad;
  struct Change {
    at::Tensor own;
    at::Tensor written;
    at::Tensor where;
  };
  std::vector<Change> changes;
  for (Weight& weight : weights_) {
    if (version_of(weight.tensor) == weight.version) continue;
    const at::Tensor written = weight.tensor.detach().to(weight.own.scalar_type());
    if (!written.sizes().equals(weight.own.sizes())) {
      weight.own = written;
      continue;
    }
    // Numbers that forward has left alone keep their precision.
    const at::Tensor before = weight.own.to(type_).to(weight.own.scalar_type());
    changes.push_back({.own = weight.own, .written = written, .where = written.ne(before)});
  }
  // Only now: one may share its memory, and its count, with another that forward has not written.
  for (const Change& change : changes)
    if (change.where.any().item<bool>())
      change.own.copy_(at::where(change.where, change.written, change.own));
}

void LowPrecisionWeights::require_possible(const torch::nn::Module& module, const std::string& argument) {
  if (any_is_sharded(module.parameters())) {
    throw Error({.what = "converts whole weights, and each process has a shard of them",
                 .where = argument,
                 .hint = "leave it out: with bf16 sharded models compute in bf16"});
  }
  for (const std::shared_ptr<torch::nn::Module>& layer : module.modules()) {
    if (dynamic_cast<const CompiledModelImpl*>(layer.get()) == nullptr) continue;
    throw Error({.what = layer->name() + " computes in the type for which it was compiled",
                 .where = argument,
                 .hint = "leave it out: acc compile --mixed_precision bf16 compiles for bf16"});
  }
}

}  // namespace acc::detail
