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

namespace acc::detail {

/// The properties of a parameter or buffer that must be the same on all processes.
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

/// A checksum for each tensor: the sum of its elements' bits as integers. Different tensors have different
/// checksums, except in rare cases.
at::Tensor checksums(const std::vector<at::Tensor>& tensors);

/// Throws the same Error{usage} on every rank, with the first name and the ranks that differ from rank 0,
/// when the values of `tensors` are not the same everywhere.
void require_equal_parameters(const std::vector<std::string>& names, const std::vector<at::Tensor>& tensors,
                              ProcessGroup& group);

}  // namespace acc::detail
