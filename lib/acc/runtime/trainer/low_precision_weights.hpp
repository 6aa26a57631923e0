// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace acc::detail {

/// While it exists, the floating-point parameters and buffers of a module have another type. Afterwards they
/// are what they were: the same tensors, in the same memory, known to the same optimizers and gradient hooks.
class LowPrecisionWeights {
 public:
  /// `module` must outlive this object. Weights of another type are in memory in both.
  LowPrecisionWeights(torch::nn::Module& module, at::ScalarType type);
  ~LowPrecisionWeights();
  LowPrecisionWeights(const LowPrecisionWeights&) = delete;
  LowPrecisionWeights& operator=(const LowPrecisionWeights&) = delete;

  /// What forward has written into weights and buffers since then, such as a cache or a count, will be in
  /// them afterwards, too.
  void keep_changes();

  /// Throws Error{usage} with the argument's name if the type of the module's weights cannot be changed: they
  /// are sharded, or the module is compiled.
  static void require_possible(const torch::nn::Module& module, const std::string& argument);

 private:
  struct Weight {
    at::Tensor tensor;
    at::Tensor own;         // an alias of it, in its own type
    std::uint32_t version;  // of the converted values, before forward
  };

  torch::nn::Module& module_;
  at::ScalarType type_;
  std::vector<Weight> weights_ = {};
  std::map<std::string, at::ScalarType> buffer_types_ = {};
};

}  // namespace acc::detail
