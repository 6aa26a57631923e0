// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/modules/compiled_model.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/modules/compiled_library.hpp"
#include "acc/runtime/modules/compiled_package.hpp"
#include "acc/runtime/parallel/autograd_function.hpp"

namespace acc {
namespace {

using detail::CompiledPackage;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A step that was computed: backward gives out its gradients.
struct Step {
  at::Tensor loss;
  variable_list gradients;
};

struct StepFunction : torch::autograd::Function<StepFunction> {
  static at::Tensor forward(AutogradContext* context, const Step& step, at::TensorList /*parameters*/) {
    context->save_for_backward(step.gradients);
    return step.loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients_of_loss) {
    // They are numbers, through which nothing can be differentiated again.
    if (c10::GradMode::is_enabled()) {
      throw Error(
          {.what = "a compiled step has no gradients of gradients, as backward with create_graph needs",
           .hint = "compile the penalty in the loss of the Python model, or train in Python"});
    }
    variable_list gradients = context->get_saved_variables();
    const at::Tensor& factor = gradients_of_loss.at(0);
    if (factor.item<double>() != 1) {
      // Accumulation and averages scale the loss.
      for (at::Tensor& gradient : gradients) gradient = gradient * factor;
    } else if (!torch::autograd::get_current_graph_task_keep_graph()) {
      // What was saved goes with the graph, and a parameter takes what nobody else holds without a copy.
      for (at::Tensor& gradient : gradients) gradient = gradient.variable_data();
    }
    gradients.insert(gradients.begin(), at::Tensor());
    return gradients;
  }
};

// What a library returns, without the last result if that says whether all indices are in range.
std::vector<at::Tensor> run_checked(detail::CompiledLibrary& library,
                                    const CompiledLibraryDescription& description,
                                    const std::vector<at::Tensor>& batch, const std::string& model) {
  std::vector<at::Tensor> results = library.run(batch);
  const std::vector<std::string>& checks = description.checks;
  if (checks.empty()) return results;
  if (results.empty() || results.back().scalar_type() != at::kBool ||
      results.back().numel() != std::ssize(checks)) {
    throw Error({.kind = ErrorKind::config, .what = "returns no results of its checks", .where = model});
  }
  const bool* passed = results.back().const_data_ptr<bool>();
  for (std::size_t index = 0; index < checks.size(); ++index)
    if (!passed[index]) throw Error({.what = checks[index], .where = model});
  results.pop_back();
  return results;
}

// Of a name such as features.0.weight the part before the last dot, and that after it.
std::pair<std::string, std::string> split_name(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {"", name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

// The layers of a model, which hold its tensors and do not compute.
class Layers {
 public:
  Layers(torch::nn::Module& model, const std::map<std::string, std::string>& classes)
      : model_(model), classes_(classes) {}

  torch::nn::Module& at(const std::string& path) {
    if (path.empty()) return model_;
    std::shared_ptr<torch::nn::Module>& layer = layers_[path];
    if (!layer) {
      const auto class_name = classes_.find(path);
      layer =
          std::make_shared<torch::nn::Module>(class_name == classes_.end() ? "Module" : class_name->second);
      const auto [parent, name] = split_name(path);
      at(parent).register_module(name, layer);
    }
    return *layer;
  }

 private:
  torch::nn::Module& model_;
  const std::map<std::string, std::string>& classes_;
  std::map<std::string, std::shared_ptr<torch::nn::Module>> layers_ = {};
};

}  // namespace

struct CompiledModelImpl::Impl {
  CompiledPackage package = {};
  std::unique_ptr<detail::CompiledLibrary> training = {};
  std::unique_ptr<detail::CompiledLibrary> evaluation = {};
  std::vector<at::Tensor> trained = {};  // in the order of the gradients
  std::vector<CompiledParameter> frozen = {};
  std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>> layers = {};
};

CompiledModelImpl::CompiledModelImpl(const std::filesystem::path& package)
    : CompiledModelImpl(package, detail::read_compiled_package(package)) {}

CompiledModelImpl::CompiledModelImpl(const std::filesystem::path& file, CompiledPackage&& package)
    : Module(shorten(package.model)), impl_(std::make_unique<Impl>(Impl{.package = std::move(package)})) {
  const CompiledPackage& content = impl_->package;
  detail::require_host(content, detail::CompiledHost::this_one(), file);
  register_tensors();
  const auto load = [&](const char* name, const CompiledLibraryDescription& library) {
    return std::make_unique<detail::CompiledLibrary>(file, name, library.constants, content.tensors);
  };
  impl_->training = load("training", content.training);
  impl_->evaluation = load("evaluation", content.evaluation);
  for (const std::string& name : content.training.gradients)
    impl_->trained.push_back(content.tensors.at(name));
  std::ranges::copy_if(content.parameters, std::back_inserter(impl_->frozen),
                       [](const CompiledParameter& parameter) { return !parameter.trained; });
  for (const auto& layer : named_modules(/*name_prefix=*/{}, /*include_self=*/false))
    impl_->layers.emplace_back(layer.key(), layer.value());
}

CompiledModelImpl::~CompiledModelImpl() = default;

// The tensors of the package become the module's own, in memory of their own.
void CompiledModelImpl::register_tensors() {
  CompiledPackage& package = impl_->package;
  for (auto& [name, tensor] : package.tensors) tensor = tensor.clone();
  Layers layers(*this, package.layers);
  for (const CompiledParameter& parameter : package.parameters) {
    const auto [layer, name] = split_name(parameter.name);
    at::Tensor& tensor = package.tensors.at(parameter.name);
    tensor = layers.at(layer).register_parameter(name, tensor, parameter.trained);
  }
  for (const std::string& buffer : package.buffers) {
    const auto [layer, name] = split_name(buffer);
    layers.at(layer).register_buffer(name, package.tensors.at(buffer));
  }
}

void CompiledModelImpl::require_precision() const {
  if (!at::autocast::is_autocast_enabled(at::kCPU)) return;
  const at::ScalarType type = at::autocast::get_autocast_dtype(at::kCPU);
  const at::ScalarType compiled = impl_->package.is_bf16 ? at::kBFloat16 : at::kFloat;
  if (type == compiled) return;
  throw Error({.what = fmt::format("was compiled for {}, and is called in {}", c10::toString(compiled),
                                   c10::toString(type)),
               .where = name(),
               .hint = "acc compile --mixed_precision bf16 compiles for bf16"});
}

// The code is that of a model in one mode.
void CompiledModelImpl::require_mode() const {
  for (const auto& [layer, module] : impl_->layers) {
    if (module->is_training() == is_training()) continue;
    const char* mode = module->is_training() ? "training" : "evaluation";
    throw Error({.what = fmt::format("is in {} mode, and the model is not", mode),
                 .where = fmt::format("{}, layer {}", name(), layer),
                 .hint = "compile the model with a train() that leaves this layer in evaluation mode"});
  }
}

CompiledOutput CompiledModelImpl::run(std::vector<at::Tensor> batch) {
  const CompiledPackage& package = impl_->package;
  detail::require_inputs(package, batch, name());
  require_precision();
  require_mode();
  for (const CompiledParameter& parameter : impl_->frozen) {
    if (!package.tensors.at(parameter.name).requires_grad()) continue;
    throw Error({.what = "was frozen when the package was made, which has no gradient of it",
                 .where = parameter.name,
                 .hint = "compile the model with it unfrozen"});
  }
  for (at::Tensor& tensor : batch) tensor = tensor.contiguous();
  if (!is_training()) {
    std::vector<at::Tensor> outputs = run_checked(*impl_->evaluation, package.evaluation, batch, name());
    at::Tensor loss = outputs.at(0);
    outputs.erase(outputs.begin());
    return {std::move(loss), std::move(outputs)};
  }
  std::vector<at::Tensor> results = run_checked(*impl_->training, package.training, batch, name());
  if (results.size() <= impl_->trained.size()) {
    throw Error(
        {.kind = ErrorKind::config, .what = "returns fewer tensors than it has gradients", .where = name()});
  }
  const auto gradients = std::ranges::subrange(results.end() - std::ssize(impl_->trained), results.end());
  Step step{results.at(0), {gradients.begin(), gradients.end()}};
  std::vector<at::Tensor> outputs(results.begin() + 1, gradients.begin());
  return {StepFunction::apply(step, at::TensorList(impl_->trained)), std::move(outputs)};
}

std::vector<at::Tensor> CompiledModelImpl::group(const std::string& name) const {
  const auto& groups = impl_->package.groups;
  const auto group = groups.find(name);
  if (group == groups.end()) {
    throw Error({.what = fmt::format("has no group '{}' of parameters", name),
                 .where = this->name(),
                 .hint = fmt::format("it has: {}", fmt::join(groups | std::views::keys, ", "))});
  }
  std::vector<at::Tensor> parameters;
  for (const std::string& parameter : group->second)
    parameters.push_back(impl_->package.tensors.at(parameter));
  return parameters;
}

}  // namespace acc
