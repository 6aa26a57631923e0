// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/sync_batch_norm.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm_native.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/library.h>
#include <torch/nn/modules/batchnorm.h>

#include <array>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/process_group.hpp"
#include "acc/runtime/parallel/autograd_function.hpp"

namespace acc {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// All dimensions but the channels.
std::vector<std::int64_t> reduced_dims(const at::Tensor& input) {
  std::vector<std::int64_t> dims;
  for (std::int64_t dim = 0; dim < input.dim(); ++dim) {
    if (dim != 1) dims.push_back(dim);
  }
  return dims;
}

// [C] as [1, C, 1, ...].
at::Tensor per_channel(const at::Tensor& values, const at::Tensor& input) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = values.numel();
  return values.view(shape);
}

// Statistics of half types are computed in float32.
at::ScalarType type_of_statistics(const at::Tensor& input) {
  return input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

struct Statistics {
  at::Tensor mean;
  at::Tensor var;
  double count;
};

Statistics statistics_of_all(const at::Tensor& input, ProcessGroup& group) {
  const std::int64_t channels = input.size(1);
  const std::int64_t count = input.numel() / channels;
  const at::TensorOptions options = input.options().dtype(at::kDouble);
  at::Tensor statistics = at::zeros({2, channels}, options);
  if (count > 0) {
    const auto [var, mean] =
        at::var_mean(input.to(type_of_statistics(input)), reduced_dims(input), /*unbiased=*/false);
    statistics = at::cat({mean.view({1, -1}), var.view({1, -1})}).to(at::kDouble);
  }
  const at::Tensor counted = at::full({1, channels}, static_cast<double>(count), options);
  const at::Tensor gathered = group.all_gather(at::cat({statistics, counted}));
  const at::Tensor means = gathered.select(1, 0);
  const at::Tensor counts = gathered.select(1, 2);
  const at::Tensor total = counts.sum(0);
  const at::Tensor mean = (means * counts).sum(0) / total;
  const at::Tensor var = (counts * (gathered.select(1, 1) + (means - mean).square())).sum(0) / total;
  return {mean, var, total[0].item<double>()};
}

void update_running(const detail::BatchNormTensors& tensors, const Statistics& batch) {
  if (batch.count == 0) return;
  const auto blend = [&](at::Tensor running, const at::Tensor& now) {
    if (running.defined())
      running.mul_(1 - tensors.momentum).add_(now.to(running.scalar_type()), tensors.momentum);
  };
  blend(tensors.running_mean, batch.mean);
  blend(tensors.running_var, batch.var * (batch.count / (batch.count - 1)));
}

// Returns `result`, which depends on the inputs in a way that autograd does not know.
struct DerivedOnce : torch::autograd::Function<DerivedOnce> {
  static at::Tensor forward(AutogradContext* /*context*/, const at::Tensor& result,
                            at::TensorList /*inputs*/) {
    return result.alias();
  }
  static variable_list backward(AutogradContext* /*context*/, const variable_list& /*gradients*/) {
    throw Error({.what = "its second derivative is not there, as for a penalty on gradients",
                 .where = "synchronized batch norm",
                 .hint = "leave out convert_sync_batchnorm, or use another norm"});
  }
};

struct GlobalBatchNorm : torch::autograd::Function<GlobalBatchNorm> {
  // weight and bias are optional parameters because LibTorch must not count absent ones as inputs.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
                            const detail::BatchNormTensors& tensors,
                            const std::shared_ptr<ProcessGroup>& group) {
    const Statistics batch = statistics_of_all(input, *group);
    update_running(tensors, batch);
    const at::ScalarType type = type_of_statistics(input);
    const at::Tensor mean = batch.mean.to(type);
    context->save_for_backward({input, tensors.weight, mean, (batch.var + tensors.eps).rsqrt().to(type)});
    context->saved_data["count"] = batch.count;
    context->saved_data["has_bias"] = tensors.bias.defined();
    context->saved_data["group"] = detail::HeldInGraph<std::shared_ptr<ProcessGroup>>::hold(group);
    if (input.numel() == 0) return at::empty_like(input);
    // With training=false it normalizes with the given statistics.
    // Its kernels take half inputs with statistics in float32 only if weight and bias have those' type.
    const auto as_statistics = [type](const std::optional<at::Tensor>& one) {
      return one && one->defined() ? std::optional(one->to(type)) : one;
    };
    return std::get<0>(at::native_batch_norm(input, as_statistics(weight), as_statistics(bias), mean,
                                             batch.var.to(type),
                                             /*training=*/false, tensors.momentum, tensors.eps));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (!at::GradMode::is_enabled()) return gradients_of(context, gradients);
    const variable_list inputs = {gradients[0], context->get_saved_variables()[0]};
    variable_list results;
    {
      const at::NoGradGuard no_grad;
      results = gradients_of(context, gradients);
    }
    for (at::Tensor& result : results) {
      if (result.defined()) result = DerivedOnce::apply(result, at::TensorList(inputs));
    }
    return results;
  }

  static variable_list gradients_of(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& invstd = saved[3];
    const double count = context->saved_data["count"].toDouble();
    const at::Tensor dy = gradients[0].to(invstd.scalar_type());
    const at::Tensor normalized =
        (input.to(invstd.scalar_type()) - per_channel(saved[2], input)) * per_channel(invstd, input);
    const std::vector<std::int64_t> dims = reduced_dims(input);
    const at::Tensor own_bias = dy.sum(dims);
    const at::Tensor own_weight = (dy * normalized).sum(dims);

    at::Tensor grad_input;
    if (context->needs_input_grad(0)) {
      at::Tensor means = at::cat({own_bias.view({1, -1}), own_weight.view({1, -1})});
      detail::HeldInGraph<std::shared_ptr<ProcessGroup>>::held(context->saved_data["group"])
          ->all_reduce(means, ReduceOp::sum);
      means = means / count;
      const at::Tensor scale = weight.defined() ? invstd * weight.to(invstd.scalar_type()) : invstd;
      grad_input = (dy - per_channel(means[0], input) - normalized * per_channel(means[1], input)) *
                   per_channel(scale, input);
      grad_input = grad_input.to(input.scalar_type());
    }
    const bool has_bias = context->saved_data["has_bias"].toBool();
    return {
        grad_input, weight.defined() ? own_weight : at::Tensor(), has_bias ? own_bias : at::Tensor(), {}, {}};
  }
};

}  // namespace

namespace detail {

at::Tensor global_batch_norm(const at::Tensor& input, const BatchNormTensors& tensors,
                             const std::shared_ptr<ProcessGroup>& group) {
  const auto given = [](const at::Tensor& one) { return one.defined() ? std::optional(one) : std::nullopt; };
  return GlobalBatchNorm::apply(input, given(tensors.weight), given(tensors.bias), tensors, group);
}

}  // namespace detail

namespace {

using OptionalTensor = std::optional<at::Tensor>;

struct Converted {
  std::weak_ptr<torch::nn::Module> module = {};
  std::weak_ptr<ProcessGroup> group = {};
};

// The converted batch norms. LibTorch's modules are called without virtual functions, so a program's modules
// cannot be replaced. Instead LibTorch's batch_norm operator is overridden, in which a module is identified
// by its tensors.
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
  return detail::global_batch_norm(input,
                                   {.weight = weight.value_or(at::Tensor()),
                                    .bias = bias.value_or(at::Tensor()),
                                    .running_mean = running_mean.value_or(at::Tensor()),
                                    .running_var = running_var.value_or(at::Tensor()),
                                    .momentum = momentum,
                                    .eps = eps},
                                   group);
}

// Overrides LibTorch's operator; called only by programs that convert a module.
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

// The layers of a model that was made in Python compute by themselves, whatever their tensors are registered
// for.
void require_not_pythons(const torch::nn::Module& module, const std::string& name) {
  const std::string& kind = module.name();
  if (kind != "BatchNorm1d" && kind != "BatchNorm2d" && kind != "BatchNorm3d") return;
  throw Error({.what = fmt::format("is a {} of a Python model, which cannot be synchronized", kind),
               .where = name.empty() ? kind : name,
               .hint = "use torch.nn.GroupNorm in Python, or a larger batch for each process"});
}

at::Tensor key_of(const torch::nn::Module& batch_norm) {
  const auto buffers = batch_norm.named_buffers(/*recurse=*/false);
  const auto parameters = batch_norm.named_parameters(/*recurse=*/false);
  const at::Tensor* mean = buffers.find("running_mean");
  const at::Tensor* weight = parameters.find("weight");
  return key_of(mean != nullptr ? OptionalTensor(*mean) : std::nullopt,
                weight != nullptr ? OptionalTensor(*weight) : std::nullopt);
}

template <class Function>
void for_each_module(const torch::nn::Module& module, const std::string& name, const Function& function) {
  function(module, name);
  for (const auto& child : module.named_children())
    for_each_module(*child.value(), name.empty() ? child.key() : name + "." + child.key(), function);
}

}  // namespace

void convert_sync_batchnorm(torch::nn::Module& module) {
  watch_batch_norms();
  for_each_module(module, "", [](const torch::nn::Module& part, const std::string& name) {
    require_not_pythons(part, name);
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

namespace detail {

void use_group_in_sync_batch_norms(const torch::nn::Module& module,
                                   const std::shared_ptr<ProcessGroup>& group) {
  for_each_module(module, "", [&](const torch::nn::Module& part, const std::string& /*name*/) {
    if (!is_batch_norm(part)) return;
    const at::Tensor key = key_of(part);
    if (key.defined()) Registry::instance().set_group(key, group);
  });
}

void require_no_sync_batch_norms(const torch::nn::Module& module, std::string_view function) {
  for_each_module(module, "", [&](const torch::nn::Module& part, const std::string& name) {
    const at::Tensor key = is_batch_norm(part) ? key_of(part) : at::Tensor();
    if (!key.defined() || Registry::instance().group_of(key) == nullptr) return;
    throw Error({.what = fmt::format("is a synchronized batch norm, which {} does not support: its forward "
                                     "waits for all processes",
                                     function),
                 .where = name.empty() ? part.name() : name,
                 .hint = "leave out convert_sync_batchnorm, or give every process as many batches "
                         "(even_batches)"});
  });
}

}  // namespace detail

}  // namespace acc
