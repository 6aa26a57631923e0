// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/parallel/process_group.hpp"

namespace torch::nn {
class Module;
}

namespace acc {

/// What must be the same on all processes about one parameter or buffer.
struct ParameterInfo {
  std::string name = {};
  /// As `float32 [64, 10]`.
  std::string form = {};

  bool operator==(const ParameterInfo&) const = default;
};

/// In the order in which gradients are exchanged: parameters, then buffers.
std::vector<ParameterInfo> describe_parameters(const torch::nn::Module& module);

/// The first parameter in which any rank differs from rank 0, as an error that names it; nothing when all
/// agree.
std::optional<Error> find_disagreement(const std::vector<std::vector<ParameterInfo>>& by_rank);

/// Throws the same Error{usage} on every rank when the module is not the same everywhere.
void require_same_parameters(const torch::nn::Module& module, ProcessGroup& group);

}  // namespace acc
