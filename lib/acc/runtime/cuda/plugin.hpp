// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <variant>

#include "acc/runtime/cuda/cuda_table.hpp"

namespace acc {

/// The CUDA plug-in of this process, or a line that says why it could not be loaded; an empty line where
/// nothing asked for it.
using CudaPlugin = std::variant<const CudaTable*, std::string>;

/// Loads a plug-in for good. One that was compiled with another LibTorch than this library is not taken.
CudaPlugin load_cuda_plugin(const std::filesystem::path& file);

/// Loads the plug-in in libacc.so's folder as that of this process.
void use_cuda_plugin_beside_library();

/// What was loaded together with libacc.so (on_load.cpp), under the rule of may_load_cuda.
const CudaPlugin& cuda_plugin();

/// The plug-in, where a device of it is in use.
const CudaTable& cuda_table();

/// The devices that this process may use, and where there are none, why: empty when nothing asked for them.
struct CudaDevices {
  int count = 0;
  std::string why_none = {};
};

/// Asks the plug-in; the first call initializes the driver.
CudaDevices find_cuda_devices(const CudaPlugin& plugin);

}  // namespace acc
