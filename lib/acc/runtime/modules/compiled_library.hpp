// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "acc/runtime/checkpoint/safetensors.hpp"

namespace torch::inductor {
class AOTIModelPackageLoader;
}

namespace acc::detail {

/// The machine code of one of the libraries in a package. It computes with the tensors that it is given, and
/// changes buffers in place.
class CompiledLibrary {
 public:
  /// Loads the library `name`, which runs code of it. `constants` are the names in the library of `tensors`.
  /// Throws Error{system} naming the file if it cannot be loaded.
  CompiledLibrary(const std::filesystem::path& file, const std::string& name,
                  const std::map<std::string, std::string>& constants, const NamedTensors& tensors);
  ~CompiledLibrary();

  /// Runs it. Tensors whose storage was replaced since the last call are used with the new one. Throws
  /// Error{usage} naming a tensor that has another type, shape, layout or device than the code was compiled
  /// for.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

 private:
  // A tensor of the model, and what the code has of it.
  struct Constant {
    std::string name;
    at::Tensor tensor;
    at::ScalarType type;
    std::vector<std::int64_t> sizes;
    const void* data = nullptr;
  };

  void follow(Constant& constant, const std::string& symbol);

  std::unique_ptr<torch::inductor::AOTIModelPackageLoader> loader_;
  std::unordered_map<std::string, Constant> constants_ = {};
  // The code keeps pointers to these.
  std::unordered_map<std::string, at::Tensor> handles_ = {};
};

}  // namespace acc::detail
