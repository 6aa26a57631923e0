// SPDX-License-Identifier: Apache-2.0
// A plug-in of acc that was compiled with a LibTorch of long ago.
#include "acc/runtime/cuda/cuda_table.hpp"

extern "C" const acc::CudaTable* acc_cuda_table() {
  static constexpr acc::CudaTable table{.torch_version = "1.0.0"};
  return &table;
}
