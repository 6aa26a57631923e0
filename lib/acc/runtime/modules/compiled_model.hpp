// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <concepts>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/runtime/parallel/whole_module.hpp"

namespace acc {

namespace detail {
struct CompiledPackage;
}

/// The loss, which backward starts from, and what else the model's forward returned in Python, in its order;
/// these have no gradients.
using CompiledOutput = std::pair<at::Tensor, std::vector<at::Tensor>>;

/// The module of a CompiledModel.
class CompiledModelImpl : public torch::nn::Module, public detail::WholeModule {
 public:
  /// The model in a package of `acc compile`, with its initial weights. **Runs code of the package.** Throws
  /// Error{config} if the file is none, Error{system} if it was compiled for another LibTorch or processor.
  explicit CompiledModelImpl(const std::filesystem::path& package);
  ~CompiledModelImpl() override;

  /// For messages.
  std::string_view kind() const override { return "a compiled model"; }

  /// The loss and the outputs of a batch: the inputs of the model's forward, then the targets of its loss. In
  /// training mode, with all gradients, which are computed here and given out by backward; buffers such as
  /// those of batch norms are updated. Dropout draws from the default generator. Throws Error{usage} for
  /// other shapes or types, a tensor that requires a gradient, a parameter that was frozen when the package
  /// was made and is not any longer, a layer in another mode than the model, within an autocast of another
  /// precision than the package's, and for an index or a label that is out of range. Throws it in a backward
  /// with create_graph.
  template <std::convertible_to<const at::Tensor&>... Tensors>
  CompiledOutput forward(const Tensors&... batch) {
    return run({batch...});
  }

  /// The parameters of a group that the factory named. Throws Error{usage} if there is none.
  std::vector<at::Tensor> group(const std::string& name) const;

 private:
  struct Impl;

  CompiledModelImpl(const std::filesystem::path& file, detail::CompiledPackage&& package);

  CompiledOutput run(std::vector<at::Tensor> batch);
  void register_tensors();
  void require_precision() const;
  void require_mode() const;

  std::unique_ptr<Impl> impl_;
};

/// A training step of a model that was made in Python, loss and gradients, as machine code:
/// `acc::CompiledModel net("net.pt2");` is used as any module. Its parameters and buffers have Python's
/// names, and a checkpoint of it is one of the Python model.
TORCH_MODULE(CompiledModel);

}  // namespace acc
