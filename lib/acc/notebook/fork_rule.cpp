// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/fork_rule.hpp"

#include <dlfcn.h>

#include "acc/base/error.hpp"
#include "acc/runtime/process/partial_state.hpp"

namespace acc::detail {
namespace {

constexpr int kCudaErrorNotInitialized = 3;

[[noreturn]] void refuse(const char* what, const char* hint) {
  throw Error({.what = what, .where = "notebook_launcher", .hint = hint});
}

}  // namespace

bool has_used_cuda() {
  // libacc.so loads the driver where there is one, and does not initialize it.
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  auto* count_devices = reinterpret_cast<int (*)(int*)>(::dlsym(driver, "cuDeviceGetCount"));
  int count = 0;
  const bool used = count_devices != nullptr && count_devices(&count) != kCudaErrorNotInitialized;
  ::dlclose(driver);
  return used;
}

void require_fork_can_train(const Environment& environment) {
  if (environment.contains("RANK"))
    refuse("this process is a worker of a job already: RANK is set",
           "call it in the program that starts the job");
  if (has_joined_job()) {
    refuse("this process has an Accelerator, or is in a process group",
           "make them in the function that is launched; in a notebook, restart the kernel");
  }
  if (has_used_cuda()) {
    refuse("this process has used CUDA, which its forks then cannot",
           "use GPUs, and torch::cuda::is_available() too, in the function that is launched alone; in a "
           "notebook, restart the kernel");
  }
}

}  // namespace acc::detail
