// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace acc {

/// The arguments of torch.nn.DataParallel.
struct DataParallelOptions {
  /// Default: every CUDA device.
  std::vector<at::Device> device_ids = {};
  /// The device of the output. Default: the first of device_ids.
  std::optional<at::Device> output_device = {};
  /// The dimension along which inputs are split and outputs are concatenated.
  std::int64_t dim = 0;
};

namespace detail {

/// The devices on which a DataParallel computes.
class DeviceGroup {
 public:
  /// Calls the forward of a copy of the module on one device. Called on one thread for each device.
  using Forward = std::function<at::Tensor(torch::nn::Module&, const std::vector<at::Tensor>&)>;

  /// Throws Error{usage} for a CUDA device that is not there.
  explicit DeviceGroup(DataParallelOptions options);

  at::Tensor forward(torch::nn::Module& module, const std::vector<at::Tensor>& inputs,
                     const Forward& forward) const;

 private:
  DataParallelOptions options_;
};

}  // namespace detail

/// Data parallelism in one process on several devices, as Python's torch.nn.DataParallel: each forward copies
/// the module to every device, splits the batch among the devices and concatenates the outputs. Gradients
/// flow back to the module itself; the buffers of the first device's copy are copied back to it. With fewer
/// than two devices it calls the module itself, on that device. One process per device, as `acc launch`
/// starts them, is faster.
template <class Module>
class DataParallel {
 public:
  /// Throws Error{usage} for a CUDA device that is not there.
  explicit DataParallel(std::shared_ptr<Module> module, DataParallelOptions options = {})
      : module_(std::move(module)), devices_(std::move(options)) {}

  /// The module's forward; all its arguments are tensors. Throws Error{usage} when the inputs cannot be split
  /// into the same number of parts, or the module cannot be copied (it must be a torch::nn::Cloneable).
  template <std::convertible_to<at::Tensor>... Inputs>
  at::Tensor forward(const Inputs&... inputs) {
    const auto call = [](torch::nn::Module& copy, const std::vector<at::Tensor>& parts) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return dynamic_cast<Module&>(copy).forward(parts[I]...);
      }(std::index_sequence_for<Inputs...>());
    };
    return devices_.forward(*module_, {at::Tensor(inputs)...}, call);
  }

  template <std::convertible_to<at::Tensor>... Inputs>
  at::Tensor operator()(const Inputs&... inputs) {
    return forward(inputs...);
  }

  Module* operator->() const { return module_.get(); }
  const std::shared_ptr<Module>& module() const { return module_; }  ///< The module on the first device.

 private:
  std::shared_ptr<Module> module_;
  detail::DeviceGroup devices_;
};

}  // namespace acc
