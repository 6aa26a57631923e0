// SPDX-License-Identifier: Apache-2.0
// Does with the packages of compare.py what a compiled step refuses or is rarely asked for, and prints what
// comes of it, a line each.
//   misuse MLP GPT
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "acc/data.hpp"
#include "acc/error.hpp"
#include "acc/modules.hpp"
#include "acc/trainer.hpp"

namespace {

template <typename Action>
void print_error_of(const char* what, Action action) {
  try {
    action();
    std::printf("%s: no error\n", what);
  } catch (const acc::Error& error) {
    std::printf("%s: %s\n", what, error.what());
  }
}

void misuse_labels(acc::CompiledModel& mlp) {
  const at::Tensor inputs = at::ones({2, 12});
  const auto train_with = [&](std::int64_t label) {
    at::Tensor labels = at::full({2}, 1, at::kLong);
    labels[1] = label;
    mlp->forward(inputs, labels).first.backward();
  };
  print_error_of("label -1", [&] { train_with(-1); });
  print_error_of("label 5", [&] { train_with(5); });
  print_error_of("label 4", [&] { train_with(4); });
  print_error_of("the ignored label", [&] { train_with(-100); });
  mlp->eval();
  print_error_of("label 5 in evaluation", [&] { train_with(5); });
  mlp->train();
}

void misuse_gradients(acc::CompiledModel& mlp) {
  const at::Tensor loss = mlp->forward(at::ones({2, 12}), at::full({2}, 1, at::kLong)).first;
  print_error_of("create_graph", [&] {
    torch::autograd::grad({loss}, mlp->group("weights"), {}, /*retain_graph=*/true, /*create_graph=*/true);
  });
}

void go_backward_twice(acc::CompiledModel& mlp) {
  const at::Tensor weight = mlp->group("weights").at(0);
  weight.mutable_grad() = at::Tensor();
  const at::Tensor loss = mlp->forward(at::ones({2, 12}), at::full({2}, 1, at::kLong)).first;
  loss.backward(/*gradient=*/{}, /*retain_graph=*/true);
  const at::Tensor once = weight.grad().clone();
  loss.backward();
  std::printf("backward twice: %s\n",
              weight.grad().equal(once + once) ? "twice the gradient" : "another gradient");
}

// While one weight is refused, the others get new storage.
void replace_storage(acc::CompiledModel& mlp) {
  const at::NoGradGuard no_grad;
  const auto weights = mlp->group("weights");
  const auto loss = [&] {
    return mlp->forward(at::ones({2, 12}), at::full({2}, 1, at::kLong)).first.item<double>();
  };
  const auto refuses = [&] {
    try {
      loss();
      return false;
    } catch (const acc::Error&) {
      return true;
    }
  };
  bool good = true;
  mlp->eval();
  for (const at::Tensor& refused : weights) {
    loss();
    const at::Tensor kept = refused.detach();
    for (const at::Tensor& weight : weights) weight.set_data(weight.detach() * 1.25);
    refused.set_data(kept.to(at::kDouble));
    good = refuses() && good;
    refused.set_data(kept);
    const double after = loss();
    for (const at::Tensor& weight : weights) weight.set_data(weight.detach().clone());
    good = after == loss() && good;
  }
  mlp->train();
  std::printf("replaced storage: %s\n", good ? "is used" : "is not used");
}

void misuse_type(acc::CompiledModel& mlp) {
  const acc::TensorDataset data(at::ones({2, 12}), at::full({2}, 1, at::kLong));
  acc::TrainingArguments arguments;
  arguments.disable_tqdm = true;
  arguments.bf16_full_eval = true;
  acc::Trainer trainer(mlp, arguments, data, data);
  print_error_of("type", [&] { trainer.evaluate(); });
}

void misuse_layers(acc::CompiledModel& mlp) {
  mlp->named_modules()["net.0"]->eval();
  print_error_of("layer", [&] { mlp->forward(at::ones({2, 12}), at::full({2}, 1, at::kLong)); });
}

}  // namespace

int main(int, char** argv) try {
  acc::CompiledModel mlp(argv[1]);
  acc::CompiledModel gpt(argv[2]);
  std::printf("files: %s\n", std::filesystem::is_empty(std::getenv("TMPDIR")) ? "none" : "some");
  misuse_labels(mlp);
  misuse_gradients(mlp);
  go_backward_twice(mlp);
  replace_storage(mlp);
  misuse_type(mlp);
  misuse_layers(mlp);
  print_error_of("token -1", [&] { gpt->forward(at::full({2, 7}, -1, at::kLong)); });
  print_error_of("token 20", [&] { gpt->forward(at::full({2, 7}, 20, at::kLong)); });
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return acc::exit_code(error.kind());
}
