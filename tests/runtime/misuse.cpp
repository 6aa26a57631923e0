// SPDX-License-Identifier: Apache-2.0
// Does not compile: misuse_test.cmake compiles it and checks the messages of the compiler.
#include <torch/nn/modules/linear.h>

#include "acc/runtime/accelerator.hpp"

void misuse(acc::Accelerator& accelerator, acc::Model<torch::nn::LinearImpl>& model) {
  accelerator.prepare(42);
  accelerator.accumulate(model);
  accelerator.no_sync(model);
  model.no_sync();
}
