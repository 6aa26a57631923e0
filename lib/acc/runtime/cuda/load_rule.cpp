// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/cuda/load_rule.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "acc/base/text.hpp"

namespace acc {
namespace {

// CUDA's list of devices ends at the first entry that names none.
bool hides_all_devices(const Environment& environment) {
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  return visible && (trim(*visible).empty() || trim(*visible).starts_with('-'));
}

}  // namespace

DriverSigns look_for_cuda_driver() {
  DriverSigns signs;
  std::error_code ignored;
  signs.kernel_module = std::filesystem::exists("/proc/driver/nvidia", ignored);
  if (void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    signs.library = true;
    ::dlclose(library);
  }
  return signs;
}

bool may_load_cuda(const Environment& environment, const DriverSigns& driver) {
  if (parse_truth(environment.get("ACCELERATE_USE_CPU")).value_or(false)) return false;
  if (!parse_truth(environment.get("ACC_LOAD_CUDA")).value_or(true)) return false;
  if (hides_all_devices(environment)) return false;
  return driver.kernel_module || driver.library;
}

}  // namespace acc
