// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cuda_plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "acc/runtime/comm/explain_failure.hpp"

namespace acc::detail {
namespace {

constexpr const char* kPluginFile = "libacc_cuda.so";

CudaPlugin& loaded_plugin() {
  static CudaPlugin plugin = std::string();
  return plugin;
}

std::filesystem::path folder_of_this_library() {
  Dl_info info = {};
  if (::dladdr(reinterpret_cast<const void*>(&loaded_plugin), &info) == 0) return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

}  // namespace

CudaPlugin load_cuda_plugin(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    return fmt::format("acc was built without CUDA ({} is not there); build it with -DACC_CUDA=ON",
                       file.string());
  }
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fmt::format("LibTorch's CUDA libraries cannot be loaded: {}", ::dlerror());
  const auto function = reinterpret_cast<CudaTableFunction>(::dlsym(library, kCudaTableFunction));
  if (function == nullptr) return fmt::format("{} is not a plug-in of acc", file.string());
  const CudaTable* table = function();
  if (std::string_view(table->torch_version) != TORCH_VERSION) {
    return fmt::format("{} was built for LibTorch {}, libacc.so for {}", file.string(), table->torch_version,
                       TORCH_VERSION);
  }
  return table;
}

void use_cuda_plugin_beside_library() {
  loaded_plugin() = load_cuda_plugin(folder_of_this_library() / kPluginFile);
}

const CudaPlugin& cuda_plugin() {
  return loaded_plugin();
}

const CudaTable& cuda_table() {
  return *std::get<const CudaTable*>(loaded_plugin());
}

CudaDevices find_cuda_devices(const CudaPlugin& plugin) {
  if (const auto* why = std::get_if<std::string>(&plugin)) return {.why_none = *why};
  CudaDevices devices;
  devices.count = std::get<const CudaTable*>(plugin)->count_devices(devices.why_none);
  devices.why_none = first_line(devices.why_none);
  return devices;
}

}  // namespace acc::detail
