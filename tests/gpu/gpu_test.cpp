// SPDX-License-Identifier: Apache-2.0
// Tests on CUDA devices: one for each process over NCCL, or one for all over Gloo; main.cpp skips them if
// there are none. All processes run all cases in this order.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <functional>

#include "acc/runtime/comm/cuda_plugin.hpp"
#include "job.hpp"
#include "support/catch.hpp"

using namespace acc::test;  // NOLINT: the job and its net

namespace {

std::vector<double> train(acc::MixedPrecision precision, int steps) {
  acc::set_seed(3);
  acc::AcceleratorOptions options = job_options();
  options.mixed_precision = precision;
  acc::Accelerator accelerator(options);
  Net net;
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  const at::Tensor x = at::randn({32, 8}).to(accelerator.device());
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = (model(x) - 1).square().mean();
    CHECK(loss.device() == accelerator.device());
    accelerator.backward(loss);
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

}  // namespace

TEST_CASE("gpu: the device is that of the local rank", "[gpu]") {
  const int expected = devices_are_shared() ? 0 : job().local_process_index();
  CHECK(job().device() == at::Device(at::kCUDA, static_cast<at::DeviceIndex>(expected)));
  CHECK(at::ones({1}, at::kCUDA).device() == job().device());
}

TEST_CASE("gpu: the same seed gives the same numbers on the device", "[gpu]") {
  acc::set_seed(7);
  const at::Tensor first = at::randn({64}, job().device());
  acc::set_seed(7);
  CHECK(at::randn({64}, job().device()).equal(first));
}

TEST_CASE("gpu: a prepared model and the state of its optimizer are on the device", "[gpu]") {
  Net net;
  torch::optim::Adam adam(net->parameters(), 0.1);
  net->forward(at::ones({4, 8})).sum().backward();
  adam.step();
  acc::Accelerator accelerator(job_options());
  auto [model, optimizer] = accelerator.prepare(net, std::move(adam));
  for (const at::Tensor& parameter : model->parameters()) CHECK(parameter.device() == job().device());
  optimizer.zero_grad();
  accelerator.backward(model(at::ones({4, 8}, job().device())).sum());
  optimizer.step();
  CHECK(optimizer.native().state().size() == model->parameters().size());
}

TEST_CASE("gpu: without device_placement a model stays where it is", "[gpu]") {
  acc::AcceleratorOptions options = job_options();
  options.device_placement = false;
  acc::Accelerator accelerator(options);
  if (accelerator.distributed()) return;  // NCCL cannot average gradients on the CPU
  auto model = accelerator.prepare(Net());
  CHECK(model->parameters().front().device().is_cpu());
}

TEST_CASE("gpu: collective operations support every type, on the device and on the CPU", "[gpu]") {
  for (const at::Device device : {job().device(), at::Device(at::kCPU)}) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt,
                                      at::kShort, at::kByte, at::kChar, at::kBool}) {
      CAPTURE(device.str(), c10::toString(type));
      const at::Tensor mine = at::ones({3}, at::TensorOptions(device).dtype(type));
      at::Tensor all = group()->all_gather(mine);
      CHECK(all.device() == device);
      CHECK(all.equal(at::ones({group()->size(), 3}, mine.options())));
      at::Tensor sent = mine.clone();
      group()->broadcast(sent, 0);
      CHECK(sent.equal(mine));
    }
    at::Tensor sum = at::ones({4}, at::TensorOptions(device));
    group()->all_reduce(sum, acc::ReduceOp::sum);
    CHECK(sum.equal(at::full({4}, group()->size(), at::TensorOptions(device))));
  }
  group()->barrier();
}

TEST_CASE("gpu: averaged gradients are those of the whole batch", "[gpu]") {
  acc::set_seed(5);
  Net net;
  Net alone;
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < net->parameters().size(); ++i)
      alone->parameters()[i].copy_(net->parameters()[i]);
  }
  net->to(job().device());
  alone->to(job().device());
  acc::Ddp model(net.ptr(), group());
  const at::Tensor x = at::randn({2 * group()->size(), 8}).to(job().device());
  group()->broadcast({x}, 0);
  const at::Tensor loss = model(x.slice(0, 2 * group()->rank(), 2 * group()->rank() + 2)).mean();
  loss.backward();
  alone->forward(x).mean().backward();
  for (std::size_t i = 0; i < net->parameters().size(); ++i)
    CHECK(net->parameters()[i].grad().allclose(alone->parameters()[i].grad(), 1e-4, 1e-6));
}

TEST_CASE("gpu: steps of a prepared optimizer are those of LibTorch's own", "[gpu]") {
  using namespace torch::optim;
  const auto steps_of = [](bool prepared, const auto& make) {
    acc::set_seed(2);
    Net net;
    net->to(job().device());
    auto native =
        std::make_shared<typename std::decay_t<decltype(make)>::result_type>(make(net->parameters()));
    acc::Optimizer optimizer(native);
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      net->forward(at::ones({4, 8}, job().device())).square().sum().backward();
      if (prepared) {
        optimizer.step();
      } else {
        native->step();
      }
    }
    return net->parameters();
  };
  const auto compare = [&](const auto& make) {
    const auto expected = steps_of(false, make);
    const auto stepped = steps_of(true, make);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(stepped[i].allclose(expected[i], 1e-5, 1e-6));
  };
  using Parameters = std::vector<at::Tensor>;
  compare(std::function([](const Parameters& all) { return SGD(all, SGDOptions(0.01).momentum(0.9)); }));
  compare(std::function([](const Parameters& all) { return Adam(all, AdamOptions(0.01).amsgrad(true)); }));
  compare(std::function([](const Parameters& all) { return AdamW(all, AdamWOptions(0.01)); }));
}

TEST_CASE("gpu: float32, bf16 and fp16 train to nearly the same loss", "[gpu]") {
  const std::vector<double> full = train(acc::MixedPrecision::no, 20);
  CHECK(full.back() < full.front() / 2);
  CHECK(std::abs(train(acc::MixedPrecision::bf16, 20).back() - full.back()) < 0.05);
  CHECK(std::abs(train(acc::MixedPrecision::fp16, 20).back() - full.back()) < 0.05);
}
