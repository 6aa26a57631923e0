// SPDX-License-Identifier: Apache-2.0
// Does not compile: misuse_test.cmake compiles it and checks the messages of the compiler.
#include <torch/nn/modules/linear.h>

#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/recomputation/checkpoint_function.hpp"

struct WithoutForward : torch::nn::Module {};
struct WithoutSamples {
  std::size_t size() const { return 3; }
};
struct NoObject {
  void* memory;
};

void misuse(acc::Accelerator& accelerator, acc::Model<torch::nn::LinearImpl>& model) {
  accelerator.prepare(42);
  accelerator.accumulate(model);
  accelerator.no_sync(model);
  model.no_sync();
  accelerator.prepare(std::make_shared<WithoutForward>())(at::Tensor());
  accelerator.prepare(std::shared_ptr<torch::nn::Module>());
  acc::DataLoader(WithoutSamples(), {});
  accelerator.gather_for_metrics(3);
  accelerator.gather_for_metrics(std::vector<NoObject>());
  const at::Tensor x;
  acc::checkpoint([](const at::Tensor& t, at::IntArrayRef shape) { return t.view(shape); }, x, x.sizes());
}
