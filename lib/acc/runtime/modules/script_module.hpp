// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "acc/runtime/parallel/whole_module.hpp"

namespace torch::jit {
struct Module;
}

namespace acc {

namespace detail {

/// An object of TorchScript as a module of LibTorch: its parameters, buffers and layers under Python's names.
/// The tensors are the object's own, so that what an optimizer, a conversion or a checkpoint does to them is
/// what the script computes with.
class ScriptObject : public torch::nn::Module, public WholeModule {
 public:
  explicit ScriptObject(const torch::jit::Module& script);
  ~ScriptObject() override;

  std::string_view kind() const override { return "a TorchScript model"; }

  /// Also sets the mode of the script's own layers.
  void train(bool on = true) override;

  /// The object: for `script().save(…)`, which Python's torch.jit.load reads, and for its attributes.
  const torch::jit::Module& script() const { return *script_; }

 protected:
  /// Calls a method. Throws Error{usage} if there is none of this name, it does not take these inputs, does
  /// not return a `result`, or has assigned another tensor to a parameter.
  c10::IValue call_method(const std::string& method, std::vector<c10::IValue> inputs,
                          const c10::TypePtr& result);

 private:
  // An attribute of the object that is a parameter or a buffer.
  struct TensorSlot {
    std::string name;
    std::size_t index;
  };

  // A script may assign another tensor to a buffer: `self.count = self.count + 1`. None leaves it undefined.
  void take_up_buffers();
  void require_parameters() const;

  std::unique_ptr<torch::jit::Module> script_;
  std::vector<TensorSlot> parameter_slots_ = {};
  std::vector<TensorSlot> buffer_slots_ = {};
  std::vector<std::shared_ptr<ScriptObject>> layers_ = {};
};

/// Reads a file of torch.jit.save. Throws Error{usage} if it is none.
torch::jit::Module read_script(const std::filesystem::path& file, at::Device device);

/// `script`. Throws Error{usage} if it cannot be trained: it has no parameters, or hooks around its forward.
torch::jit::Module require_trainable(torch::jit::Module script);

// An argument of a method. An undefined tensor is None.
template <class Value>
  requires std::is_constructible_v<c10::IValue, const Value&>
c10::IValue script_input(const Value& value) {
  if constexpr (std::is_same_v<Value, at::Tensor>) {
    return value.defined() ? c10::IValue(value) : c10::IValue();
  } else {
    return c10::IValue(value);
  }
}
template <class Key, class Value>
c10::IValue script_input(const std::map<Key, Value>& values) {
  c10::Dict<Key, Value> dictionary;
  for (const auto& [key, value] : values) dictionary.insert(key, value);
  return dictionary;
}

/// A tensor, number, bool or text, or tuples, vectors, optionals and maps of them.
template <class Value>
concept ScriptInput = requires(const Value& value) { detail::script_input(value); };

// The type in TorchScript of a C++ type, and how a value becomes one.
template <class Value>
struct ScriptType {
  static c10::TypePtr type() { return c10::getTypePtr<Value>(); }
  static Value value(const c10::IValue& value) { return value.to<Value>(); }
};
template <class Key, class Value>
struct ScriptType<std::map<Key, Value>> {
  using Unordered = std::unordered_map<Key, Value>;
  static c10::TypePtr type() { return c10::getTypePtr<Unordered>(); }
  static std::map<Key, Value> value(const c10::IValue& value) {
    const auto unordered = value.to<Unordered>();
    return {unordered.begin(), unordered.end()};
  }
};

}  // namespace detail

/// The module of a ScriptModule.
template <class Output = at::Tensor>
class ScriptModuleImpl : public detail::ScriptObject {
 public:
  /// The model in a file of torch.jit.save, on `device`. Throws Error{usage} if the file has none.
  explicit ScriptModuleImpl(const std::filesystem::path& file, at::Device device = at::kCPU)
      : ScriptObject(detail::require_trainable(detail::read_script(file, device))) {}

  /// A model that the program has. It is not copied: both train the same tensors.
  /// Throws Error{usage} if it has no parameters, or hooks around its forward.
  explicit ScriptModuleImpl(const torch::jit::Module& script)
      : ScriptObject(detail::require_trainable(script)) {}

  /// The script's forward. Throws Error{usage} if it does not take these inputs or returns another type.
  template <detail::ScriptInput... Inputs>
  Output forward(const Inputs&... inputs) {
    return call<Output>("forward", inputs...);
  }

  /// Any method that Python exported (`@torch.jit.export`), as in `net->call<at::Tensor>("encode", images)`.
  /// As in Python, only forward takes part in what a prepared model does around it.
  template <class Result, detail::ScriptInput... Inputs>
  Result call(const std::string& method, const Inputs&... inputs) {
    using Type = detail::ScriptType<Result>;
    return Type::value(call_method(method, {detail::script_input(inputs)...}, Type::type()));
  }
};

/// A model that was made in Python and saved with `torch.jit.script(model).save("net.pt")`:
/// `acc::ScriptModule net("net.pt");` is then used as any module, and a checkpoint of it is one of the Python
/// model. `Output` is what its forward returns: a tensor, or a tuple, vector or optional of tensors, or a map
/// of them, as in `acc::ScriptModule<std::tuple<at::Tensor, at::Tensor>> net("net.pt");`.
template <class Output = at::Tensor>
class ScriptModule : public torch::nn::ModuleHolder<ScriptModuleImpl<Output>> {
  using Holder = torch::nn::ModuleHolder<ScriptModuleImpl<Output>>;

 public:
  ScriptModule(std::nullptr_t) : Holder(nullptr) {}  // NOLINT: implicit, as LibTorch's holders
  explicit ScriptModule(std::shared_ptr<ScriptModuleImpl<Output>> module) : Holder(std::move(module)) {}

  /// Reads a file of torch.jit.save. Throws Error{usage} if it has no model.
  explicit ScriptModule(const std::filesystem::path& file, at::Device device = at::kCPU)
      : Holder(std::make_shared<ScriptModuleImpl<Output>>(file, device)) {}

  /// A model that the program has. It is not copied: both train the same tensors.
  explicit ScriptModule(const torch::jit::Module& script)
      : Holder(std::make_shared<ScriptModuleImpl<Output>>(script)) {}
};

}  // namespace acc
