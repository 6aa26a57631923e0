// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/low_precision_weights.hpp"

#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/torch.h>

#include <memory>
#include <stdexcept>

#include "acc/runtime/modules/script_module.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/lone_shards.hpp"

namespace low_precision_weights_test {

using acc::detail::LowPrecisionWeights;

namespace {

constexpr float kFine = 1.001F;  // bfloat16 has 1

struct NetImpl : torch::nn::Module {
  NetImpl()
      : fc(register_module("fc", torch::nn::Linear(2, 2))),
        twin(register_module("twin", fc)),
        cache(register_buffer("cache", torch::full({3}, kFine))),
        count(register_buffer("count", torch::zeros({}, torch::kLong))),
        phases(register_parameter("phases", torch::ones({2}, torch::kComplexFloat))) {}

  torch::nn::Linear fc;
  torch::nn::Linear twin;
  at::Tensor cache;
  at::Tensor count;
  at::Tensor phases;
};
TORCH_MODULE(Net);

}  // namespace

TEST_CASE("low precision weights: the module has its own tensors again, in their memory and with their hooks",
          "[runtime]") {
  Net net;
  const at::Tensor& weight = net->fc->weight;
  const at::Tensor before = weight.detach().clone();
  const void* const memory = weight.data_ptr();
  const auto hooked = torch::autograd::impl::grad_accumulator(weight);
  {
    const LowPrecisionWeights weights(*net, at::kBFloat16);
    CHECK(weight.scalar_type() == at::kBFloat16);
    CHECK(weight.equal(before.to(at::kBFloat16)));
    CHECK(weight.requires_grad());
    CHECK(net->cache.scalar_type() == at::kBFloat16);
    CHECK(net->count.scalar_type() == at::kLong);
    CHECK(net->phases.scalar_type() == at::kComplexFloat);
    CHECK(net->twin->forward(torch::ones({1, 2}, at::kBFloat16)).scalar_type() == at::kBFloat16);
  }
  CHECK(weight.data_ptr() == memory);
  CHECK(weight.equal(before));
  CHECK(torch::autograd::impl::grad_accumulator(weight) == hooked);
}

TEST_CASE("low precision weights: an evaluation that throws leaves nothing behind", "[runtime]") {
  Net net;
  const auto evaluate = [&] {
    const LowPrecisionWeights weights(*net, at::kHalf);
    const at::NoGradGuard no_grad;
    net->cache.fill_(7);
    throw std::runtime_error("no memory");
  };
  CHECK_THROWS_AS(evaluate(), std::runtime_error);
  CHECK(net->cache.equal(torch::full({3}, kFine)));
}

TEST_CASE("low precision weights: what forward has written stays, and the rest keeps its precision",
          "[runtime]") {
  Net net;
  {
    LowPrecisionWeights weights(*net, at::kBFloat16);
    const at::NoGradGuard no_grad;
    net->cache[1] = 5;
    net->count += 1;
    weights.keep_changes();
  }
  CHECK(net->cache.equal(torch::tensor({kFine, 5.0F, kFine})));
  CHECK(net->count.item<int>() == 1);
}

TEST_CASE("low precision weights: what forward has written stays where other buffers are views of it",
          "[runtime]") {
  struct Views : torch::nn::Module {
    at::Tensor cache = register_buffer("cache", torch::full({3}, kFine));
    at::Tensor head = register_buffer("head", cache.slice(0, 0, 1));
    at::Tensor rows = register_buffer("rows", cache.expand({2, 3}));
  } net;
  {
    LowPrecisionWeights weights(net, at::kBFloat16);
    const at::NoGradGuard no_grad;
    net.cache.slice(0, 0, 2).fill_(5);
    weights.keep_changes();
  }
  CHECK(net.cache.equal(torch::tensor({5.0F, 5.0F, kFine})));
  CHECK(net.head.item<float>() == 5);
  CHECK(net.rows.data_ptr() == net.cache.data_ptr());
}

TEST_CASE("low precision weights: a module that was made in an inference mode has its own tensors again",
          "[runtime]") {
  Net net = [] {
    const c10::InferenceMode mode;
    return Net();
  }();
  const at::Tensor before = net->fc->weight.clone();
  {
    LowPrecisionWeights weights(*net, at::kBFloat16);
    CHECK(net->fc->weight.scalar_type() == at::kBFloat16);
    weights.keep_changes();
  }
  CHECK(net->fc->weight.is_inference());
  CHECK(net->fc->weight.equal(before));
}

TEST_CASE("low precision weights: a buffer that a script assigns gets the type of the former one",
          "[runtime]") {
  torch::jit::Module script("Assigning");
  script.register_parameter("weight", torch::full({1}, kFine).requires_grad_(), /*is_buffer=*/false);
  script.register_buffer("count", torch::zeros({}));
  script.define(R"(
    def forward(self, x):
        self.count = self.count + 1
        return x * self.weight
  )");
  acc::ScriptModule<> net(script);
  {
    LowPrecisionWeights weights(*net, at::kBFloat16);
    CHECK(net->forward(torch::ones({1}, at::kBFloat16)).item<float>() == 1);
    weights.keep_changes();
  }
  const at::Tensor count = script.attr("count").toTensor();
  CHECK(count.scalar_type() == at::kFloat);
  CHECK(count.item<float>() == 1);
  CHECK(net->named_buffers()["count"].is_same(count));
  CHECK(net->forward(torch::ones({1})).item<float>() == kFine);
}

TEST_CASE("low precision weights: shards are refused in one line", "[runtime]") {
  const acc::test::LoneShards<torch::optim::SGD> shards(torch::nn::Linear(2, 2), 0.1);
  CHECK(acc::test::error_of([&] { LowPrecisionWeights::require_possible(*shards.net, "bf16_full_eval"); }) ==
        "bf16_full_eval: converts whole weights, and each process has a shard of them (leave it out: with "
        "bf16 sharded models compute in bf16)");
}

}  // namespace low_precision_weights_test
