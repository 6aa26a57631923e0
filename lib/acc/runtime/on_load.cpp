// SPDX-License-Identifier: Apache-2.0
// Everything that libacc.so does when it is loaded, before main: what would come too late in the constructor
// of an Accelerator. README.md ("When libacc.so is loaded") has the variables that switch it off.
#include <cstdlib>

#include "acc/base/environment.hpp"
#include "acc/runtime/amx.hpp"
#include "acc/runtime/cuda/load_rule.hpp"
#include "acc/runtime/cuda/plugin.hpp"

namespace acc {
namespace {

// oneDNN reads the variable at its first kernel and never again. A value of the user's stays.
void limit_onednn_where_amx_is_broken(const Environment& environment) {
  if (may_guard_amx(environment) && amx_is_broken(ask_amx()))
    ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", /*overwrite=*/0);
}

// LibTorch looks for CUDA once, at the program's first seed or backward.
void load_cuda_where_there_is_a_driver(const Environment& environment) {
  if (may_load_cuda(environment, look_for_cuda_driver())) use_cuda_plugin_beside_library();
}

[[gnu::constructor]] void on_load() {
  const Environment environment = Environment::of_process();
  limit_onednn_where_amx_is_broken(environment);
  load_cuda_where_there_is_a_driver(environment);
}

}  // namespace
}  // namespace acc
