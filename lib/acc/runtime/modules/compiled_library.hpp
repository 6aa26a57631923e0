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
class AOTIModelContainerRunnerCpu;
}

namespace acc::detail {

/// The machine code of one of the libraries in a package. It computes with the tensors that it is given, and
/// changes buffers in place.
class CompiledLibrary {
 public:
  /// Loads the library `name`, which runs code of it, and leaves no file behind. `constants` are the names in
  /// the library of `tensors`. Throws Error{config} naming the file if it is not a package, has no such
  /// library or tensors that do not fit it, Error{system} if it cannot be loaded.
  CompiledLibrary(const std::filesystem::path& file, const std::string& name,
                  const std::map<std::string, std::string>& constants, const NamedTensors& tensors);
  ~CompiledLibrary();

  /// Runs it. Tensors whose storage was replaced since the last call are used with the new one. Throws
  /// Error{usage} naming a tensor that has another type, shape, layout or device than the code was compiled
  /// for, Error{system} if the code fails.
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

  std::string name_;
  std::unique_ptr<torch::inductor::AOTIModelContainerRunnerCpu> runner_;
  std::unordered_map<std::string, Constant> constants_ = {};
  // By their names in the code, which keeps pointers to them.
  std::unordered_map<std::string, at::Tensor> handles_ = {};
  // Whether the code has all of them; not after an error between two.
  bool is_current_ = false;
};

}  // namespace acc::detail
