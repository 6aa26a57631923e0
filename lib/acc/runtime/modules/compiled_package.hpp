// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/checkpoint/safetensors.hpp"

namespace acc::detail {

/// A tensor that a compiled step takes. A dimension without a size is that of the batch.
struct CompiledInput {
  at::ScalarType type = at::kFloat;
  std::vector<std::optional<std::int64_t>> shape = {};

  bool operator==(const CompiledInput&) const = default;
};

/// One of the two libraries in a package.
struct CompiledLibraryDescription {
  /// The names in the library of the tensors that it uses, and their names in Python.
  std::map<std::string, std::string> constants = {};
  /// The parameters whose gradients the library returns, in order, after the loss and the outputs.
  std::vector<std::string> gradients = {};
  /// What is wrong where the library's last result, which it has if there are any, is false, such as an index
  /// that is out of range: the code computes with another value then.
  std::vector<std::string> checks = {};
};

/// What `acc compile` wrote about a model, apart from its code.
struct CompiledPackage {
  struct Parameter {
    std::string name = {};
    bool trained = true;
  };

  std::uint32_t checksum = 0;  ///< CRC-32 of the file of the weights
  std::string model = {};      ///< the class in Python
  std::string torch = {};      ///< the version that compiled it, as in 2.11.0
  at::ScalarType precision = at::kFloat;
  std::string machine = {};                         ///< as uname says it
  std::set<std::string> processor = {};             ///< instructions that the code may use
  std::optional<std::int64_t> smallest_batch = {};  ///< nullopt: each dimension has one size
  std::vector<CompiledInput> inputs = {};
  std::vector<Parameter> parameters = {};          ///< in Python's order
  std::vector<std::string> buffers = {};           ///< those of the state dictionary
  std::map<std::string, std::string> layers = {};  ///< the class of each layer, by name
  std::map<std::string, std::vector<std::string>> groups = {};
  CompiledLibraryDescription training = {};
  CompiledLibraryDescription evaluation = {};
  NamedTensors tensors = {};  ///< the initial values of all tensors, which the file keeps in memory
};

/// Reads a package. Runs nothing of it. Throws Error{config} naming the file if it is none or is damaged.
CompiledPackage read_compiled_package(const std::filesystem::path& file);

/// The text acc.json of a package. Throws Error{config} without a file's name if it is not one of this
/// format.
CompiledPackage parse_compiled_description(std::string_view text);

/// A machine that is to run a package.
struct CompiledHost {
  std::string torch = {};                ///< the version of LibTorch
  std::string machine = {};              ///< as uname says it
  std::set<std::string> processor = {};  ///< its features in /proc/cpuinfo

  static CompiledHost this_one();
};

/// Throws Error{system} naming the file if the host has another LibTorch or lacks instructions.
void require_host(const CompiledPackage& package, const CompiledHost& host,
                  const std::filesystem::path& file);

/// Throws Error{usage} if a step does not take these inputs: their number, type, shape and device, and
/// whether all have the same batch. `where` names the model.
void require_inputs(const CompiledPackage& package, const std::vector<at::Tensor>& inputs,
                    const std::string& where);

}  // namespace acc::detail
