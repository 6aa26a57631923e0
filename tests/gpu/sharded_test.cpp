// SPDX-License-Identifier: Apache-2.0
// Sharded models on devices, also in a job of one process, which an Accelerator would not shard.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <torch/optim/adamw.h>

#include "acc/base/error.hpp"
#include "acc/runtime/sharded/gathered_parameters.hpp"
#include "acc/runtime/sharded/sharded_module.hpp"
#include "acc/runtime/sharded/sharded_optimizer.hpp"
#include "acc/runtime/tensors/random.hpp"
#include "job.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace {

using acc::test::group;
using acc::test::job;
using acc::test::Net;

constexpr std::int64_t kBatch = 6;

Net seeded_net() {
  acc::set_seed(1);
  return {};
}

void check_training(int stage, at::ScalarType compute) {
  const at::Device device = job().device();
  Net whole = seeded_net();
  whole->to(device);
  torch::optim::AdamW plain(whole->parameters(), torch::optim::AdamWOptions(1e-2));
  Net net = seeded_net();
  const acc::FsdpOptions fsdp{.reshard_after_forward = stage == 3, .transformer_cls_to_wrap = {"Linear"}};
  const auto module = std::make_shared<acc::detail::ShardedModule>(
      net.ptr(), group(),
      acc::detail::ShardedModuleOptions{.fsdp = fsdp, .compute = compute, .device = device});
  torch::optim::AdamW native(net->parameters(), torch::optim::AdamWOptions(1e-2));
  const acc::detail::ShardedOptimizer optimizer(native, {module});
  const bool is_float = compute == at::kFloat;
  acc::Model<acc::test::NetImpl> model(
      net.ptr(), module, is_float ? acc::MixedPrecision::no : acc::MixedPrecision::bf16, device.type());
  for (int step = 0; step < 10; ++step) {
    const at::Tensor x = at::randn({kBatch * job().num_processes(), 8}).to(device);
    model(x.narrow(0, kBatch * job().process_index(), kBatch)).to(at::kFloat).square().mean().backward();
    module->after_backward({});
    native.step();
    native.zero_grad();
    module->after_step();
    whole->forward(x).square().mean().backward();
    plain.step();
    plain.zero_grad();
  }
  const acc::GatheredParameters gathered(module);
  const double tolerance = is_float ? 1e-5 : 3e-2;
  for (std::size_t i = 0; i < net->parameters().size(); ++i)
    CHECK(net->parameters()[i].to(at::kFloat).allclose(whole->parameters()[i], tolerance, tolerance));
}

}  // namespace

TEST_CASE("sharded: a model on devices trains as on one", "[gpu]") {
  const int stage = GENERATE(2, 3);
  const at::ScalarType compute = GENERATE(at::kFloat, at::kBFloat16);
  if (acc::test::devices_are_shared()) {
    CHECK(acc::test::error_of([&] {
            check_training(stage, compute);
          }).find("sharded models on CUDA devices need NCCL") != std::string::npos);
  } else {
    check_training(stage, compute);
  }
}
