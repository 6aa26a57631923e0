// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/sparse_gradients.hpp"

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/optim/adafactor.hpp"
#include "acc/runtime/optim/muon.hpp"
#include "acc/runtime/optim/optimizer.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace sparse_gradients_test {

using acc::test::error_of;
using namespace torch::optim;

namespace {

const std::string kHint =
    " (take SGD or Adagrad for it, without weight_decay, or make the embedding without sparse(true))";

// What an optimizer of this type says of a sparse gradient. It has stepped nothing if it refuses one.
template <class Native, class Options>
std::string refusal_of(const Options& options) {
  const at::Tensor dense = at::ones({1, 2}).requires_grad_(true);
  const at::Tensor weight = at::ones({3, 2}).requires_grad_(true);
  dense.mutable_grad() = at::ones({1, 2});
  weight.mutable_grad() = at::eye(3, 2).to_sparse(1);
  acc::Optimizer optimizer(std::make_shared<Native>(std::vector<at::Tensor>{dense, weight}, options));
  std::string said = error_of([&] { optimizer.step(); });
  CHECK(dense.detach().equal(at::ones({1, 2})) == (said != "no error"));
  CHECK(weight.detach().equal(at::ones({3, 2})) == (said != "no error"));
  return said;
}

struct WordsImpl : torch::nn::Module {
  WordsImpl()
      : words(
            register_module("words", torch::nn::Embedding(torch::nn::EmbeddingOptions(4, 2).sparse(true)))) {}
  at::Tensor forward(const at::Tensor& named) { return words(named); }
  torch::nn::Embedding words;
};

}  // namespace

TEST_CASE("sparse_gradients: optimizers that cannot step them refuse them before they step any",
          "[runtime]") {
  const std::string start = "optimizer step, a parameter of [3, 2]: has sparse gradients, which ";
  CHECK(refusal_of<Adam>(AdamOptions(0.1)) == start + "torch::optim::Adam does not step" + kHint);
  CHECK(refusal_of<AdamW>(AdamWOptions(0.1)) == start + "torch::optim::AdamW does not step" + kHint);
  CHECK(refusal_of<RMSprop>(RMSpropOptions(0.1)) == start + "torch::optim::RMSprop does not step" + kHint);
  CHECK(refusal_of<acc::Muon>(acc::MuonOptions(0.1)) == start + "acc::Muon does not step" + kHint);
  CHECK(refusal_of<acc::Adafactor>(acc::AdafactorOptions(0.1)) ==
        start + "acc::Adafactor does not step" + kHint);
  CHECK(refusal_of<SGD>(SGDOptions(0.1).weight_decay(0.1)) ==
        start + "torch::optim::SGD does not step with weight_decay" + kHint);
  CHECK(refusal_of<Adagrad>(AdagradOptions(0.1).weight_decay(0.1)) ==
        start + "torch::optim::Adagrad does not step with weight_decay" + kHint);
}

TEST_CASE("sparse_gradients: SGD and Adagrad step them", "[runtime]") {
  CHECK(refusal_of<SGD>(SGDOptions(0.1)) == "no error");
  CHECK(refusal_of<SGD>(SGDOptions(0.1).momentum(0.9)) == "no error");
  CHECK(refusal_of<Adagrad>(AdagradOptions(0.1)) == "no error");
}

TEST_CASE("sparse_gradients: SGD with nesterov goes on with a momentum that was saved dense", "[runtime]") {
  const auto stepped = [](bool is_loaded) {
    const at::Tensor weight = at::ones({3, 2}).requires_grad_(true);
    const auto sgd =
        std::make_shared<SGD>(std::vector<at::Tensor>{weight}, SGDOptions(0.1).momentum(0.9).nesterov(true));
    acc::Optimizer optimizer(sgd);
    for (int step = 0; step < 3; ++step) {
      weight.mutable_grad() = (at::eye(3, 2) * (step + 1)).to_sparse(1);
      optimizer.step();
      auto& state = static_cast<SGDParamState&>(*sgd->state().at(weight.unsafeGetTensorImpl()));
      if (is_loaded) state.momentum_buffer(state.momentum_buffer().to_dense());
    }
    return weight.detach().clone();
  };
  CHECK(stepped(true).equal(stepped(false)));
}

TEST_CASE("sparse_gradients: prepare refuses such an optimizer by the parameter's name", "[runtime]") {
  const std::string refusal =
      "parameter 'words.weight': has sparse gradients, which torch::optim::AdamW does not step" + kHint;
  const auto net = std::make_shared<WordsImpl>();
  const auto adamw = [&] { return AdamW(net->parameters(), AdamWOptions(0.1)); };
  CHECK(error_of([&] { acc::Accelerator().prepare(net, adamw()); }) == refusal);
  CHECK(error_of([&] { acc::Accelerator().prepare(adamw(), net); }) == refusal);
  CHECK(error_of([&] { acc::Accelerator().prepare(net, SGD(net->parameters(), SGDOptions(0.1))); }) ==
        "no error");
  net->words->weight.requires_grad_(false);
  CHECK(error_of([&] { acc::Accelerator().prepare(net, adamw()); }) == "no error");
}

}  // namespace sparse_gradients_test
