// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "acc/formats/safetensors.hpp"
#include "acc/formats/torch_file.hpp"

namespace acc {

/// A tensor that a compiled step takes. A dimension without a size is that of the batch.
struct CompiledInput {
  const TorchDtype* dtype = nullptr;
  std::vector<std::optional<std::int64_t>> shape = {};
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

/// A parameter of a compiled model.
struct CompiledParameter {
  std::string name = {};
  bool trained = true;
};

/// What `acc compile` wrote about a model, apart from its code and its tensors.
struct CompiledDescription {
  std::uint32_t checksum = 0;                       ///< CRC-32 of the file of the weights
  std::string model = {};                           ///< the class in Python
  std::string torch = {};                           ///< the version that compiled it, as in 2.11.0
  bool is_bf16 = false;                             ///< else float32
  std::string machine = {};                         ///< as uname says it
  std::set<std::string> processor = {};             ///< instructions that the code may use
  std::optional<std::int64_t> smallest_batch = {};  ///< nullopt: each dimension has one size
  std::vector<CompiledInput> inputs = {};
  std::vector<CompiledParameter> parameters = {};  ///< in Python's order
  std::vector<std::string> buffers = {};           ///< those of the state dictionary
  std::map<std::string, std::string> layers = {};  ///< the class of each layer, by name
  std::map<std::string, std::vector<std::string>> groups = {};
  CompiledLibraryDescription training = {};
  CompiledLibraryDescription evaluation = {};
};

/// The files in a package that are read as data; the views point into the archive.
struct CompiledPackageFiles {
  std::string_view description = {};
  std::string_view checksum_of_description = {};  ///< CRC-32, as decimal digits
  std::string_view weights = {};                  ///< a safetensors file
};

/// Throws Error{config}, without a file's name as do the next two, if it is not a package.
CompiledPackageFiles find_compiled_files(std::string_view archive);

/// The text acc.json of a package. Throws Error{config} if it is not one of this format, or names tensors
/// that a module cannot have: twice, with an empty part between dots, or in layers without an end.
CompiledDescription parse_compiled_description(std::string_view text);

/// Throws Error{config} unless all tensors that the description names are there, and it has a gradient of
/// each parameter that is trained, which numbers with fractions alone have.
void require_tensors(const CompiledDescription& description, const std::vector<TensorInfo>& tensors);

}  // namespace acc
