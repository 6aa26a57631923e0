// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "acc/formats/compiled_description.hpp"
#include "acc/runtime/checkpoint/safetensors.hpp"

namespace acc::detail {

/// What `acc compile` wrote about a model, apart from its code.
struct CompiledPackage : CompiledDescription {
  NamedTensors tensors = {};  ///< the initial values of all tensors, which the file keeps in memory
};

/// Reads a package. Runs nothing of it. Throws Error{config} naming the file if it is none or is damaged.
CompiledPackage read_compiled_package(const std::filesystem::path& file);

/// A machine that is to run a package.
struct CompiledHost {
  std::string torch = {};                ///< the version of LibTorch
  std::string machine = {};              ///< as uname says it
  std::set<std::string> processor = {};  ///< its features in /proc/cpuinfo

  static CompiledHost this_one();
};

/// Throws Error{system} naming the file if the host has another LibTorch or lacks instructions.
void require_host(const CompiledDescription& package, const CompiledHost& host,
                  const std::filesystem::path& file);

/// Throws Error{usage} if a step does not take these inputs: their number, type, shape and device, and
/// whether all have the same batch. `where` names the model.
void require_inputs(const CompiledDescription& package, const std::vector<at::Tensor>& inputs,
                    const std::string& where);

}  // namespace acc::detail
