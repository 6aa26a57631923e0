// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/sync_batch_norm.hpp"

#include <ATen/ops/batch_norm_native.h>
#include <torch/library.h>
#include <torch/nn/modules/batchnorm.h>

#include <array>
#include <mutex>
#include <unordered_map>

#include "acc/base/error.hpp"
#include "acc/runtime/parallel/global_batch_norm.hpp"

namespace acc {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

struct Converted {
  std::weak_ptr<torch::nn::Module> module = {};
  std::weak_ptr<ProcessGroup> group = {};
};

// LibTorch's modules are called without virtual functions, through whatever member the program holds them
// in, so none can be put in their place. What tells one from others in LibTorch's operator is its tensors.
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  void add(const at::Tensor& key, std::weak_ptr<torch::nn::Module> module) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(converted_, [](const auto& entry) { return entry.second.module.expired(); });
    converted_[key.unsafeGetTensorImpl()] = {.module = std::move(module), .group = {}};
  }

  void set_group(const at::Tensor& key, const std::shared_ptr<ProcessGroup>& group) {
    const std::scoped_lock lock(mutex_);
    const auto found = converted_.find(key.unsafeGetTensorImpl());
    if (found != converted_.end() && !found->second.module.expired()) found->second.group = group;
  }

  // The group of a converted module that is in training; null for any other.
  std::shared_ptr<ProcessGroup> group_of(const at::Tensor& key) const {
    const std::scoped_lock lock(mutex_);
    const auto found = converted_.find(key.unsafeGetTensorImpl());
    if (found == converted_.end()) return nullptr;
    const auto module = found->second.module.lock();
    return module && module->is_training() ? found->second.group.lock() : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const at::TensorImpl*, Converted> converted_ = {};
};

at::Tensor key_of(const OptionalTensor& running_mean, const OptionalTensor& weight) {
  if (running_mean && running_mean->defined()) return *running_mean;
  return weight.value_or(at::Tensor());
}

at::Tensor batch_norm(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                      const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                      double momentum, double eps, bool cudnn_enabled) {
  const at::Tensor key = key_of(running_mean, weight);
  const auto group = training && key.defined() ? Registry::instance().group_of(key) : nullptr;
  if (!group) {
    return at::native::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
                                  cudnn_enabled);
  }
  return global_batch_norm(input,
                           {.weight = weight.value_or(at::Tensor()),
                            .bias = bias.value_or(at::Tensor()),
                            .running_mean = running_mean.value_or(at::Tensor()),
                            .running_var = running_var.value_or(at::Tensor()),
                            .momentum = momentum,
                            .eps = eps},
                           group);
}

// Only programs that convert something run through it.
void watch_batch_norms() {
  static const auto libraries = [] {
    std::array watched{
        torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCPU, __FILE__, __LINE__),
        torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCUDA, __FILE__, __LINE__)};
    for (torch::Library& library : watched) library.impl("batch_norm", &batch_norm);
    return watched;
  }();
}

template <class... Impl>
bool is_one_of(const torch::nn::Module& module) {
  return ((dynamic_cast<const Impl*>(&module) != nullptr) || ...);
}

bool is_batch_norm(const torch::nn::Module& module) {
  return is_one_of<torch::nn::BatchNorm1dImpl, torch::nn::BatchNorm2dImpl, torch::nn::BatchNorm3dImpl>(
      module);
}

at::Tensor key_of(const torch::nn::Module& batch_norm) {
  const auto buffers = batch_norm.named_buffers(/*recurse=*/false);
  const auto parameters = batch_norm.named_parameters(/*recurse=*/false);
  const at::Tensor* mean = buffers.find("running_mean");
  const at::Tensor* weight = parameters.find("weight");
  return key_of(mean != nullptr ? OptionalTensor(*mean) : std::nullopt,
                weight != nullptr ? OptionalTensor(*weight) : std::nullopt);
}

template <class Act>
void for_each_module(const torch::nn::Module& module, const std::string& name, const Act& act) {
  act(module, name);
  for (const auto& child : module.named_children())
    for_each_module(*child.value(), name.empty() ? child.key() : name + "." + child.key(), act);
}

}  // namespace

void convert_sync_batchnorm(torch::nn::Module& module) {
  watch_batch_norms();
  for_each_module(module, "", [](const torch::nn::Module& part, const std::string& name) {
    if (!is_batch_norm(part)) return;
    const std::weak_ptr<torch::nn::Module> shared =
        std::const_pointer_cast<torch::nn::Module>(part.weak_from_this().lock());
    if (shared.expired()) {
      throw Error({.what = "is not held by a shared_ptr or a holder", .where = "convert_sync_batchnorm"});
    }
    const at::Tensor key = key_of(part);
    if (!key.defined()) {
      throw Error({.what = "a batch norm with neither weights nor running statistics cannot be synchronized",
                   .where = name.empty() ? part.name() : name,
                   .hint = "make it with affine(true) or track_running_stats(true)"});
    }
    Registry::instance().add(key, shared);
  });
}

void use_group_in_sync_batch_norms(const torch::nn::Module& module,
                                   const std::shared_ptr<ProcessGroup>& group) {
  for_each_module(module, "", [&](const torch::nn::Module& part, const std::string& /*name*/) {
    if (!is_batch_norm(part)) return;
    const at::Tensor key = key_of(part);
    if (key.defined()) Registry::instance().set_group(key, group);
  });
}

}  // namespace acc
