// SPDX-License-Identifier: Apache-2.0
// Uses the CPU twice as two devices: replicas, scattering, threads and gradients work as on two GPUs.
#include "acc/runtime/parallel/data_parallel.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace data_parallel_test {

namespace {

using acc::test::error_of;

const acc::DataParallelOptions kTwo{.device_ids = {at::kCPU, at::kCPU}};

struct Net : torch::nn::Cloneable<Net> {
  Net() { reset(); }
  void reset() override { linear = register_module("linear", torch::nn::Linear(3, 2)); }

  at::Tensor forward(const at::Tensor& x) {
    if (x.size(0) == 13) throw std::runtime_error("unlucky");
    if (!at::GradMode::is_enabled()) ++calls_without_gradients;
    ++calls;
    return linear->forward(x);
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& scale) { return linear->forward(x) * scale; }

  torch::nn::Linear linear{nullptr};
  static inline std::atomic<int> calls = 0;
  static inline std::atomic<int> calls_without_gradients = 0;
};

struct NormNet : torch::nn::Cloneable<NormNet> {
  NormNet() { reset(); }
  void reset() override { norm = register_module("norm", torch::nn::BatchNorm1d(3)); }
  at::Tensor forward(const at::Tensor& x) { return norm->forward(x); }
  torch::nn::BatchNorm1d norm{nullptr};
};

struct LossNet : torch::nn::Cloneable<LossNet> {
  void reset() override {}
  at::Tensor forward(const at::Tensor& x) { return x.sum(); }
};

struct NotCloneable : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x; }
};

}  // namespace

TEST_CASE("data_parallel: outputs and gradients equal those of the module itself", "[runtime]") {
  const int rows = GENERATE(2, 5, 8);
  const auto net = std::make_shared<Net>();
  acc::DataParallel parallel(net, kTwo);
  const at::Tensor x = at::randn({rows, 3});
  const at::Tensor expected = net->forward(x);
  expected.square().sum().backward();
  const at::Tensor gradient = net->linear->weight.grad().clone();
  net->zero_grad();

  Net::calls = 0;
  const at::Tensor output = parallel(x);
  CHECK(Net::calls == 2);
  CHECK(output.allclose(expected));
  output.square().sum().backward();
  CHECK(net->linear->weight.grad().allclose(gradient, 1e-5, 1e-6));
}

TEST_CASE("data_parallel: with fewer than two devices, or rows, it calls the module itself", "[runtime]") {
  const auto net = std::make_shared<Net>();
  const at::Tensor x = at::randn({1, 3});
  for (const auto& devices : {std::vector<at::Device>{}, {at::kCPU}, {at::kCPU, at::kCPU}}) {
    Net::calls = 0;
    CHECK(acc::DataParallel(net, {.device_ids = devices})(x).equal(net->linear->forward(x)));
    CHECK(Net::calls == 1);
  }
}

TEST_CASE("data_parallel: several inputs must be split into the same number of parts", "[runtime]") {
  acc::DataParallel parallel(std::make_shared<Net>(), kTwo);
  const at::Tensor x = at::randn({4, 3});
  const at::Tensor scale = at::randn({4, 1});
  CHECK(parallel(x, scale).allclose(parallel->linear->forward(x) * scale));
  CHECK(error_of([&] { parallel(x, at::ones({1, 1})); }).find("one gives 2 parts, another 1") !=
        std::string::npos);
}

TEST_CASE("data_parallel: copies compute without gradients where the caller does", "[runtime]") {
  acc::DataParallel parallel(std::make_shared<Net>(), kTwo);
  const at::NoGradGuard no_grad;
  Net::calls_without_gradients = 0;
  CHECK_FALSE(parallel(at::randn({4, 3})).requires_grad());
  CHECK(Net::calls_without_gradients == 2);
}

TEST_CASE("data_parallel: an exception of a replica is rethrown", "[runtime]") {
  acc::DataParallel parallel(std::make_shared<Net>(), kTwo);
  CHECK_THROWS_WITH(parallel(at::randn({26, 3})), "unlucky");
}

TEST_CASE("data_parallel: of a module that returns a number each part's is there, as in Python",
          "[runtime]") {
  acc::DataParallel parallel(std::make_shared<LossNet>(), kTwo);
  CHECK(parallel(at::ones({3, 2})).equal(acc::test::numbers({4, 2}, {2}, at::kFloat)));
}

TEST_CASE("data_parallel: running statistics are those of the first replica", "[runtime]") {
  const auto net = std::make_shared<NormNet>();
  NormNet alone;
  const at::Tensor x = at::randn({8, 3});
  acc::DataParallel(net, kTwo)(x);
  alone.forward(x.narrow(0, 0, 4));
  CHECK(net->norm->running_mean.allclose(alone.norm->running_mean));
  CHECK(net->norm->num_batches_tracked.item<std::int64_t>() == 1);
}

TEST_CASE("data_parallel: a module that cannot be copied is named", "[runtime]") {
  acc::DataParallel parallel(std::make_shared<NotCloneable>(), kTwo);
  CHECK(error_of([&] { parallel(at::ones({4, 1})); }).find("NotCloneable") != std::string::npos);
}

TEST_CASE("data_parallel: a device that does not exist is named", "[runtime]") {
  const auto net = std::make_shared<Net>();
  const at::Device absent(at::kCUDA, 100);
  const std::string message = error_of([&] { acc::DataParallel(net, {.device_ids = {at::kCPU, absent}}); });
  CHECK(message.starts_with("DataParallel, cuda:100: does not exist: there are "));
  CHECK(error_of([&] { acc::DataParallel(net, {.device_ids = {at::kCPU}, .output_device = absent}); }) ==
        message);
}

}  // namespace data_parallel_test
