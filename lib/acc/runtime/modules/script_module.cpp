// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/modules/script_module.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc::detail {
namespace {

using Buffers = torch::OrderedDict<std::string, at::Tensor> torch::nn::Module::*;

// LibTorch has no function that exchanges a buffer, and keeps them private. The rules of access do not hold
// for the arguments of an explicit instantiation.
template <Buffers Member>
struct BuffersOf {
  friend at::Tensor& buffer_of(torch::nn::Module& module, const std::string& name) {
    return (module.*Member)[name];
  }
};
template struct BuffersOf<&torch::nn::Module::buffers_>;
at::Tensor& buffer_of(torch::nn::Module& module, const std::string& name);

std::string class_name(const torch::jit::Module& script) {
  const auto name = script.type()->name();
  return name ? name->name() : "ScriptModule";
}

// The first line of LibTorch's message that is not empty.
std::string first_line(const std::exception& error) {
  const auto* known = dynamic_cast<const c10::Error*>(&error);
  std::string text = known != nullptr ? known->what_without_backtrace() : error.what();
  text.erase(0, text.find_first_not_of('\n'));
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> method_names(const torch::jit::Module& script) {
  std::vector<std::string> names;
  for (const torch::jit::Method& method : script.get_methods()) names.push_back(method.name());
  return names;
}

torch::jit::Method method_of(const torch::jit::Module& script, const std::string& name) {
  if (const auto method = script.find_method(name)) return *method;
  throw Error(
      {.what = fmt::format("has no method '{}'", name),
       .where = class_name(script),
       .hint = fmt::format("it has {}; @torch.jit.export adds one", fmt::join(method_names(script), ", "))});
}

void require_result(const c10::FunctionSchema& schema, const c10::TypePtr& result, const std::string& where) {
  const c10::TypePtr& returned = schema.returns().at(0).type();
  if (returned->isSubtypeOf(*result)) return;
  throw Error({.what = fmt::format("returns {}, and the program expects {}", returned->annotation_str(),
                                   result->annotation_str()),
               .where = where,
               .hint = "name the type that it returns: acc::ScriptModule<Output>, call<Result>"});
}

void check_inputs(const c10::FunctionSchema& schema, std::vector<c10::IValue>& inputs,
                  const std::string& where) {
  try {
    schema.checkAndNormalizeInputs(inputs);
  } catch (const c10::Error& error) {
    throw Error({.what = first_line(error), .where = where});
  }
}

}  // namespace

torch::jit::Module read_script(const std::filesystem::path& file, at::Device device) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    throw Error({.what = "does not exist", .where = file.string()});
  try {
    return torch::jit::load(file.string(), device);
  } catch (const std::exception& error) {
    throw Error({.what = fmt::format("is not a model that TorchScript can read: {}", first_line(error)),
                 .where = file.string(),
                 .hint = "write it in Python: torch.jit.script(model).save(\"net.pt\")"});
  }
}

torch::jit::Module require_trainable(torch::jit::Module script) {
  const c10::ClassTypePtr type = script.type();
  if (!type->getForwardHooks().empty() || !type->getForwardPreHooks().empty()) {
    throw Error({.what = "has hooks around its forward, which would not be called",
                 .where = class_name(script),
                 .hint = "do in forward what they do, or script a module that contains this one"});
  }
  if (script.parameters().size() == 0) {
    throw Error({.what = "has no parameters to train",
                 .where = class_name(script),
                 .hint = "torch.jit.freeze makes constants of them: save the script before it"});
  }
  return script;
}

ScriptObject::ScriptObject(const torch::jit::Module& script)
    : Module(class_name(script)), script_(std::make_unique<torch::jit::Module>(script)) {
  if (script.hasattr("training")) Module::train(script.attr("training").toBool());
  const c10::ClassTypePtr type = script.type();
  for (std::size_t index = 0; index < type->numAttributes(); ++index) {
    const std::string& name = type->getAttributeName(index);
    const c10::IValue& value = script._ivalue()->getSlot(index);
    if (value.isModule()) {
      layers_.push_back(register_module(name, std::make_shared<ScriptObject>(value.toModule())));
    } else if (!value.isTensor() || !value.toTensor().defined()) {
      continue;
    } else if (type->is_parameter(index)) {
      register_parameter(name, value.toTensor(), value.toTensor().requires_grad());
      parameter_slots_.push_back({name, index});
    } else if (type->is_buffer(index)) {
      register_buffer(name, value.toTensor());
      buffer_slots_.push_back({name, index});
    }
  }
}

ScriptObject::~ScriptObject() = default;

void ScriptObject::train(bool on) {
  Module::train(on);
  if (script_->hasattr("training")) script_->setattr("training", on);
}

c10::IValue ScriptObject::call_method(const std::string& method, std::vector<c10::IValue> inputs,
                                      const c10::TypePtr& result) {
  const torch::jit::Method called = method_of(*script_, method);
  const c10::FunctionSchema& schema = called.function().getSchema();
  const std::string where = fmt::format("{}.{}", class_name(*script_), method);
  require_result(schema, result, where);
  inputs.insert(inputs.begin(), script_->_ivalue());
  check_inputs(schema, inputs, where);
  try {
    c10::IValue output = called.function()(std::move(inputs));
    take_up_buffers();
    require_parameters();
    return output;
  } catch (...) {
    take_up_buffers();
    throw;
  }
}

void ScriptObject::take_up_buffers() {
  for (const TensorSlot& slot : buffer_slots_) {
    const c10::IValue& value = script_->_ivalue()->getSlot(slot.index);
    at::Tensor& buffer = buffer_of(*this, slot.name);
    if (value.isTensor() ? !buffer.is_same(value.toTensor()) : buffer.defined())
      buffer = value.isTensor() ? value.toTensor() : at::Tensor();
  }
  for (const std::shared_ptr<ScriptObject>& layer : layers_) layer->take_up_buffers();
}

void ScriptObject::require_parameters() const {
  for (const TensorSlot& slot : parameter_slots_) {
    if (script_->_ivalue()->getSlot(slot.index).toTensor().is_same(parameters_[slot.name])) continue;
    throw Error({.what = "was replaced by the script, and would not be trained any longer",
                 .where = fmt::format("{}, parameter '{}'", class_name(*script_), slot.name),
                 .hint = "change its values in place, or make it a buffer"});
  }
  for (const std::shared_ptr<ScriptObject>& layer : layers_) layer->require_parameters();
}

}  // namespace acc::detail
