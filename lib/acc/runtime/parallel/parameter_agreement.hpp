// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/ordered_dict.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/process_group.hpp"

namespace torch::nn {
class Module;
}

namespace acc::detail {

/// The properties of a parameter or buffer that must be the same on all processes.
struct ParameterInfo {
  std::string name = {};
  /// Such as `Float [64, 10]` and `Float [64, 10] with sparse gradient`.
  std::string form = {};

  bool operator==(const ParameterInfo&) const = default;
};

/// A parameter and its name.
using NamedParameter = std::pair<std::string, at::Tensor>;

/// Each parameter once, even if its module is registered twice.
std::vector<NamedParameter> distinct_parameters(const torch::nn::Module& module);

/// The parameters whose gradients are sparse: the weights of its layers Embedding and EmbeddingBag with
/// sparse(true).
std::unordered_set<const c10::TensorImpl*> sparse_parameters(const torch::nn::Module& module);

/// The parameters that a module has when this object is made, to notice that it has others in their place
/// later, as after replace_module: optimizer and hooks have the old ones.
class KnownParameters {
 public:
  /// Which must stay: all, or those that are trained, now or then.
  enum class Scope { all, trained };

  KnownParameters(std::shared_ptr<const torch::nn::Module> module, Scope scope);

  /// Throws Error{usage} naming the first one in whose place the module has another one now.
  void require() const;
  /// Its name; empty if there is none. Asked before each forward, so it takes no more than a walk through the
  /// modules as long as nothing has changed.
  std::string exchanged() const;

 private:
  std::shared_ptr<const torch::nn::Module> module_;
  Scope scope_;
  std::vector<const c10::TensorImpl*> registered_;
  std::vector<NamedParameter> parameters_;
};

/// The parameters in the order in which gradients are exchanged, then the buffers.
std::vector<ParameterInfo> describe_parameters(const torch::nn::Module& module);

/// An Error that names the first parameter in which a rank differs from rank 0; nothing when all ranks agree.
std::optional<Error> find_disagreement(const std::vector<std::vector<ParameterInfo>>& by_rank);

/// Throws Error{usage} naming a tensor that rank 0's values cannot be written to, since its elements share
/// memory. `kind`: parameter or buffer.
void require_own_memory(const char* kind, const torch::OrderedDict<std::string, at::Tensor>& tensors);

/// Throws the same Error{usage} on every rank when names, shapes or types of the module differ between ranks.
void require_same_parameters(const torch::nn::Module& module, ProcessGroup& group);
/// The same for a module that `parameters` describes, where some processes may not know of the comparison,
/// see ProcessGroup::all_gather_to_compare.
void require_same_parameters(const std::vector<ParameterInfo>& parameters, ProcessGroup& group,
                             std::string_view doing);

/// A checksum for each tensor: the sum of its elements' bits as integers. Different tensors rarely have the
/// same checksum.
at::Tensor checksums(const std::vector<at::Tensor>& tensors);

/// Throws the same Error{usage} on every rank when the values of `tensors` are not the same on all, with the
/// first name and the ranks that differ from rank 0.
void require_equal_parameters(const std::vector<std::string>& names, const std::vector<at::Tensor>& tensors,
                              ProcessGroup& group);

}  // namespace acc::detail
