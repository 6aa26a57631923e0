// SPDX-License-Identifier: Apache-2.0
// A CUDA plug-in of acc that was compiled with an old LibTorch.
#include "acc/runtime/comm/cuda_plugin.hpp"

extern "C" const acc::detail::CudaTable* acc_cuda_table() {
  static constexpr acc::detail::CudaTable table{.torch_version = "1.0.0"};
  return &table;
}
