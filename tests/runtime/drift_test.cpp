// SPDX-License-Identifier: Apache-2.0
// Checks for mistakes that would let the models of a job's processes diverge silently. Runs on several
// processes, each of which runs all cases in this order.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <cmath>
#include <sstream>
#include <string>

#include "acc/runtime/parallel/join.hpp"
#include "runtime/job.hpp"
#include "support/catch.hpp"

using namespace acc::test;  // NOLINT: the job and its net

namespace {

at::Tensor own_input(double step = 0) {
  return at::full({2, 2}, rank() + 1 + step, here());
}

void copy_weights(const torch::nn::Module& from, torch::nn::Module& to) {
  const at::NoGradGuard no_grad;
  const auto parameters = to.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(from.parameters()[i]);
}

bool same_everywhere(const torch::nn::Module& module) {
  const at::Tensor values = flat(module);
  const at::Tensor all = job().gather(values.unsqueeze(0));
  return all.eq(all[0]).all().item<bool>();
}

std::string what_of(const std::function<void()>& function) {
  return caught_error(function).problems().front().what;
}

const std::string kNotAveraged =
    "gradients reached the prepared model outside of a forward of its own, so they were not averaged over "
    "the processes";

// One layer under two names: LibTorch lists its parameters twice.
struct TiedNetImpl : torch::nn::Module {
  TiedNetImpl() : in(register_module("in", torch::nn::Linear(2, 2))) {
    out = register_module("out", in.ptr());
  }
  at::Tensor forward(const at::Tensor& x) { return out->forward(in->forward(x).tanh()); }
  torch::nn::Linear in;
  std::shared_ptr<torch::nn::LinearImpl> out;
};
TORCH_MODULE(TiedNet);

enum class Use { layer, sparse_function, layer_and_weight };

// Words whose weight is used by its layer, or otherwise, with gradients of another layout.
struct WordsImpl : torch::nn::Module {
  explicit WordsImpl(bool sparse)
      : words(register_module("words",
                              torch::nn::Embedding(torch::nn::EmbeddingOptions(4, 2).sparse(sparse)))) {}
  at::Tensor forward(const at::Tensor& named, Use use) {
    if (use == Use::layer) return words->forward(named);
    if (use == Use::sparse_function) return at::embedding(words->weight, named, -1, false, /*sparse=*/true);
    return words->forward(named) * words->weight.sum();
  }
  torch::nn::Embedding words;
};

}  // namespace

TEST_CASE("drift: backward refuses losses that were not computed by the prepared model's forward",
          "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  const bool through_pointer = GENERATE(true, false);
  const bool after_a_right_step = GENERATE(false, true);
  if (after_a_right_step) accelerator.backward(model(own_input()).sum());
  const auto wrong = [&] {
    accelerator.backward((through_pointer ? model->forward(own_input()) : net(own_input())).sum());
  };
  const acc::Error error = caught_error(wrong);
  CHECK(error.problems().front().what == kNotAveraged);
  CHECK(error.problems().front().hint.starts_with("call the prepared model, as model(x)"));
  // A backward that is not called through the Accelerator is detected at the step.
  optimizer.zero_grad();
  net(own_input()).sum().backward();
  CHECK(what_of([&] { optimizer.step(); }) == kNotAveraged);
  // Correct training continues to work.
  optimizer.zero_grad();
  accelerator.backward(model(own_input()).sum());
  optimizer.step();
  CHECK(same_everywhere(*net));
}

TEST_CASE("drift: a second backward for one forward is refused, except under no_sync", "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto model = accelerator.prepare(net);
  const at::Tensor out = model(own_input());
  at::Tensor{out.sum()}.backward({}, /*retain_graph=*/true);
  CHECK(what_of([&] { accelerator.backward(out.square().sum()); }) == kNotAveraged);

  at::Tensor first;
  at::Tensor second;
  {
    const acc::NoSync guard = model.no_sync();
    first = model(own_input()).sum();
    second = model(own_input(1)).sum();
    accelerator.backward(first);
  }
  accelerator.backward(second);
  accelerator.backward(model(own_input(2)).sum());
}

TEST_CASE("drift: a batch under no_sync between a forward and its backward takes its place, and is refused",
          "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  const at::Tensor averaged = model(own_input()).sum();
  {
    const acc::NoSync alone = model.no_sync();
    accelerator.backward(model(own_input(1)).sum());
  }
  CHECK(what_of([&] { accelerator.backward(averaged); }) == kNotAveraged);
  optimizer.zero_grad();
  accelerator.backward(model(own_input()).sum());
  optimizer.step();
  CHECK(same_everywhere(*net));
}

TEST_CASE("drift: several forwards before backward, and using half of the model, are allowed", "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto model = accelerator.prepare(net);
  accelerator.backward(model(own_input()).sum() + model(own_input(1)).sum());
  {
    const at::NoGradGuard no_grad;
    model(own_input());
  }
  accelerator.backward(model(own_input()).sum());
}

TEST_CASE("drift: the first step refuses parameters that do not belong to a prepared model, unless allowed",
          "[ranks]") {
  Net net;
  Net other;
  net->to(job().device());
  other->to(job().device());
  {
    acc::Accelerator accelerator;
    auto optimizer = accelerator.prepare(torch::optim::SGD(net->parameters(), 0.1));
    net(own_input()).sum().backward();
    const acc::Error error = caught_error([&] { optimizer.step(); });
    CHECK(error.problems().front().what ==
          "4 of its 4 parameters do not belong to a prepared model, so each process would train them with "
          "its own gradients only");
  }
  std::vector<at::Tensor> both = net->parameters();
  for (const at::Tensor& parameter : other->parameters()) both.push_back(parameter);
  for (const bool allowed : {false, true}) {
    acc::Accelerator accelerator({.allow_unprepared_parameters = allowed});
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(both, 0.1));
    accelerator.backward(model(own_input()).sum());
    const std::string message = what_of([&] { optimizer.step(); });
    CHECK(message.substr(0, 26) == (allowed ? "none" : "4 of its 8 parameters do n"));
  }
}

TEST_CASE("drift: layers that are frozen or unfrozen after prepare are respected in the next step",
          "[ranks]") {
  acc::Accelerator accelerator;
  acc::set_seed(3);
  Net net;
  net->first->weight.requires_grad_(false);
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  const auto step = [&](double number) {
    optimizer.zero_grad();
    accelerator.backward(model(own_input(number)).square().sum());
    optimizer.step();
  };
  step(0);
  step(1);
  net->first->weight.requires_grad_(true);
  net->second->bias.requires_grad_(false);
  const at::Tensor before = flat(*net);
  step(2);
  CHECK(same_everywhere(*net));
  CHECK_FALSE(flat(*net).slice(0, 0, 8).equal(before.slice(0, 0, 8)));
  step(3);
  accelerator.check_parameters();
  // With all layers frozen there is nothing to average.
  for (const at::Tensor& parameter : net->parameters()) parameter.requires_grad_(false);
  model(own_input());
  for (const at::Tensor& parameter : net->parameters()) parameter.requires_grad_(true);
  step(4);
  CHECK(same_everywhere(*net));
}

TEST_CASE("drift: gradients are averaged on after parameters got new memory on all processes", "[ranks]") {
  acc::Accelerator accelerator({.ddp = {.gradient_as_bucket_view = GENERATE(false, true)}});
  acc::set_seed(3);
  Net net;
  Net alone;
  alone->to(job().device());
  copy_weights(*net, *alone);
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  torch::optim::SGD by_hand(alone->parameters(), 0.1);
  const auto step = [&, &model = model, &optimizer = optimizer](double number) {
    optimizer.zero_grad();
    accelerator.backward(model(own_input(number)).square().mean());
    optimizer.step();
    by_hand.zero_grad();
    at::Tensor loss = at::zeros({}, here());
    for (int peer = 0; peer < size(); ++peer)
      loss = loss + alone(at::full({2, 2}, peer + 1 + number, here())).square().mean() / size();
    loss.backward();
    by_hand.step();
  };
  step(0);
  step(1);
  const bool as_file = GENERATE(false, true);
  if (as_file) {
    std::stringstream file;
    torch::save(net, file);
    torch::load(net, file);
  } else {
    net->to(at::kDouble);
    net->to(at::kFloat);
  }
  step(2);
  step(3);
  CHECK(same_everywhere(*net));
  CHECK(flat(*net).allclose(flat(*alone), 1e-5, 1e-6));
}

TEST_CASE("drift: a model that was converted after prepare is refused on all processes, with a name",
          "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto model = accelerator.prepare(net);
  accelerator.backward(model(own_input()).sum());
  net->to(at::kDouble);
  const acc::Error error = caught_error([&] { model(own_input().to(at::kDouble)); });
  CHECK(error.problems().front().where == "parameter 'first.weight'");
  CHECK(error.problems().front().what ==
        "was converted from Float to Double after the model was prepared, and the optimizer's state does not "
        "fit it any longer");
}

TEST_CASE("drift: parameters that are added to an optimizer later are checked, too", "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  Net head;
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  accelerator.backward(model(own_input()).sum());
  optimizer.step();
  optimizer.native().add_param_group(torch::optim::OptimizerParamGroup(head->parameters()));
  accelerator.backward(model(own_input()).sum());
  CHECK(what_of([&, &optimizer = optimizer] { optimizer.step(); }).starts_with("4 of its 8 parameters"));
}

namespace {

// A second model over the first layer of a net.
struct HeadImpl : torch::nn::Module {
  explicit HeadImpl(const Net& net) : encoder(register_module("encoder", net->first.ptr())) {}
  at::Tensor forward(const at::Tensor& x) { return encoder->forward(x).square(); }
  std::shared_ptr<torch::nn::LinearImpl> encoder;
};

bool same_gradient_everywhere(const at::Tensor& parameter) {
  const at::Tensor all = job().gather(parameter.grad().unsqueeze(0));
  return all.eq(all[0]).all().item<bool>();
}

}  // namespace

TEST_CASE("drift: an encoder of two prepared models is averaged whichever of them is trained", "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto first = accelerator.prepare(net);
  auto second = accelerator.prepare(std::make_shared<HeadImpl>(net));
  const auto first_loss = [&] { return first(own_input()).sum(); };
  const auto second_loss = [&] { return second(own_input()).sum(); };
  SECTION("both in one backward") {
    accelerator.backward(first_loss() + second_loss());
  }
  SECTION("one after the other") {
    accelerator.backward(first_loss());
    accelerator.backward(second_loss());
  }
  SECTION("one alone") {
    accelerator.backward(second_loss());
  }
  SECTION("after batches on this process alone") {
    {
      const acc::NoSync first_alone = first.no_sync();
      const acc::NoSync second_alone = second.no_sync();
      accelerator.backward(first_loss());
      accelerator.backward(second_loss());
    }
    accelerator.backward(first_loss() + second_loss());
  }
  CHECK(same_gradient_everywhere(net->first->weight));
}

TEST_CASE("drift: an encoder that gets a gradient by each of two forwards is refused", "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto first = accelerator.prepare(net);
  auto second = accelerator.prepare(std::make_shared<HeadImpl>(net));
  const at::Tensor first_loss = first(own_input()).sum();
  const at::Tensor second_loss = second(own_input()).sum();
  accelerator.backward(second_loss);
  const acc::Error error = caught_error([&] { accelerator.backward(first_loss); });
  CHECK(error.problems().front().what.starts_with("got a second gradient while other parameters"));
  CHECK(error.problems().front().where.ends_with("parameter 'first.bias'"));
}

TEST_CASE("drift: what cannot average an encoder of two prepared models refuses it by name", "[ranks]") {
  Net net;
  const auto head = std::make_shared<HeadImpl>(net);
  const auto refusal = [&](const std::string& by) {
    return "parameter 'encoder.weight': belongs to two prepared models, and " + by +
           " would average it wrongly";
  };
  const auto caught = [](const std::function<void()>& function) {
    return std::string(caught_error(function).what());
  };
  {
    acc::Accelerator accelerator({.ddp = {.gradient_as_bucket_view = true}});
    auto model = accelerator.prepare(net);
    CHECK(caught([&] { accelerator.prepare(head); }).starts_with(refusal("gradient_as_bucket_view")));
  }
  {
    acc::Accelerator accelerator({.ddp = {.static_graph = true}});
    auto model = accelerator.prepare(net);
    CHECK(caught([&] { accelerator.prepare(head); }).starts_with(refusal("static_graph")));
  }
  acc::Accelerator accelerator;
  auto first = accelerator.prepare(net);
  auto second = accelerator.prepare(head);
  CHECK(caught([&] {
          acc::join_uneven_inputs({first, second}, [] {});
        }).starts_with(refusal("join_uneven_inputs")));
}

TEST_CASE("drift: an embedding of two prepared models has no sparse gradients", "[ranks]") {
  const auto words = std::make_shared<WordsImpl>(true);
  const auto other_words = std::make_shared<WordsImpl>(true);
  other_words->replace_module("words", words->words);
  acc::Accelerator accelerator;
  auto first = accelerator.prepare(words);
  CHECK(std::string(caught_error([&] { accelerator.prepare(other_words); }).what())
            .starts_with("parameter 'words.weight': belongs to two prepared models, and both would average "
                         "its sparse gradients in place"));
}

TEST_CASE("drift: backwards through one graph are averaged by the last one", "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto model = accelerator.prepare(net);
  at::Tensor out;
  {
    const acc::NoSync alone = model.no_sync();
    out = model(own_input());
    accelerator.backward(out.sum(), {.retain_graph = true});
  }
  accelerator.trigger_sync_in_backward(model);
  accelerator.backward(out.square().sum());
  const at::Tensor both = net->first->weight.grad().clone();
  CHECK(same_gradient_everywhere(net->first->weight));

  for (const at::Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
  const at::Tensor sum = model(own_input());
  accelerator.backward(sum.sum() + sum.square().sum());
  CHECK(net->first->weight.grad().allclose(both));
}

TEST_CASE("drift: backward gives gradients to its inputs alone, and averages them when all have one",
          "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  const at::Tensor x = own_input().requires_grad_();
  accelerator.backward(model(x).sum(), {.inputs = {x}});
  CHECK(x.grad().defined());
  CHECK_FALSE(net->first->weight.grad().defined());
  accelerator.backward(model(x).sum(), {.inputs = net->parameters()});
  CHECK(same_gradient_everywhere(net->first->weight));
  optimizer.step();
  CHECK(same_everywhere(*net));

  accelerator.backward(model(x).sum(), {.inputs = {net->first->weight}});
  const std::string refusal = what_of([&, &optimizer = optimizer] { optimizer.step(); });
  CHECK(refusal.starts_with("did not contribute to the last loss"));
  CHECK(refusal.find("first.bias") != std::string::npos);
}

TEST_CASE("drift: gradients with a graph are refused where they would be averaged", "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto model = accelerator.prepare(net);
  const auto backward = [&] {
    accelerator.backward(model(own_input()).square().sum(), {.create_graph = true});
  };
  // A gradient's graph has its parameter, which has the gradient.
  const auto forget = [&] {
    for (const at::Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
  };
  {
    const acc::NoSync alone = model.no_sync();
    backward();
    CHECK(net->first->weight.grad().requires_grad());
  }
  forget();
  const acc::Error error = caught_error(backward);
  CHECK(error.problems().front().what ==
        "got a gradient with a graph of its own (create_graph), which averaging would cut off");
  forget();
}

TEST_CASE("drift: a penalty on gradients is averaged, also in a static graph", "[ranks]") {
  acc::Accelerator accelerator({.ddp = {.static_graph = GENERATE(false, true)}});
  Net net;
  auto model = accelerator.prepare(net);
  const auto loss_of = [](const at::Tensor& out, const std::vector<at::Tensor>& inputs) {
    const at::Tensor loss = out.square().sum();
    return loss + torch::autograd::grad({loss}, inputs, {}, true, /*create_graph=*/true)[0].square().sum();
  };
  Net alone;
  copy_weights(*net, *alone);
  for (int step = 0; step < 3; ++step) {
    const at::Tensor x = own_input(step).requires_grad_();
    net->zero_grad();
    alone->zero_grad();
    loss_of(alone->forward(x), {x}).backward();
    accelerator.backward(loss_of(model(x), {x}));
    const at::Tensor mean = job().reduce(alone->first->weight.grad(), acc::ReduceOp::mean);
    CHECK(net->first->weight.grad().allclose(mean));
  }
}

namespace {

struct ComplexNetImpl : torch::nn::Module {
  ComplexNetImpl() {
    turns = register_parameter("turns", at::ones({2, 2}, at::TensorOptions(at::kComplexFloat)));
    bias = register_parameter("bias", at::ones({2}));
  }
  at::Tensor forward(const at::Tensor& x) { return x.to(at::kComplexFloat).matmul(turns).abs() + bias; }
  at::Tensor turns, bias;
};

}  // namespace

TEST_CASE("drift: complex parameters are averaged, and clipped by their norm", "[ranks][cpu]") {
  acc::Accelerator accelerator({.ddp = {.gradient_as_bucket_view = GENERATE(false, true)}});
  const auto net = std::make_shared<ComplexNetImpl>();
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  net->forward(own_input()).square().sum().backward();
  const at::Tensor mean = job().reduce(net->turns.grad(), acc::ReduceOp::mean);
  optimizer.zero_grad();
  accelerator.backward(model(own_input()).square().sum());
  CHECK(at::allclose(at::view_as_real(net->turns.grad()), at::view_as_real(mean)));

  const double norm =
      std::hypot(net->turns.grad().norm().item<double>(), net->bias.grad().norm().item<double>());
  CHECK(accelerator.clip_grad_norm_(net->parameters(), 1).item<double>() == Approx(norm));
  CHECK(net->turns.grad().norm().item<double>() < 1);
  CHECK(what_of([&] { accelerator.clip_grad_value_(net->parameters(), 1); }) ==
        "some of the gradients are complex, and complex numbers are in no order");
  optimizer.step();
  accelerator.check_parameters();
}

TEST_CASE("drift: an embedding with sparse gradients that is not used is refused by name", "[ranks]") {
  const bool is_static = GENERATE(false, true);
  acc::Accelerator accelerator({.ddp = {.find_unused_parameters = !is_static, .static_graph = is_static}});
  struct Unused : torch::nn::Module {
    Unused()
        : net(register_module("net", Net())),
          words(register_module("words", std::make_shared<WordsImpl>(true))) {}
    at::Tensor forward(const at::Tensor& x) { return net(x); }
    Net net;
    std::shared_ptr<WordsImpl> words;
  };
  auto model = accelerator.prepare(std::make_shared<Unused>());
  const acc::Error error = caught_error([&] { accelerator.backward(model(own_input()).sum()); });
  CHECK(error.problems().front().where.ends_with("parameter 'words.words.weight'"));
  CHECK(error.problems().front().what.starts_with(
      "has sparse gradients, and the output does not depend on it"));
}

TEST_CASE("drift: gradients that are not as sparse as their embedding are refused by name", "[ranks]") {
  acc::Accelerator accelerator;
  const bool is_sparse = GENERATE(true, false);
  const auto words = std::make_shared<WordsImpl>(is_sparse);
  auto model = accelerator.prepare(words);
  const at::Tensor named = at::ones({2}, here().dtype(at::kLong));
  // The weight is used outside of its layer, too: densely, or as a function with sparse gradients.
  const acc::Error error = caught_error([&] {
    accelerator.backward(model(named, is_sparse ? Use::layer_and_weight : Use::sparse_function).sum());
  });
  CHECK(error.problems().front().where == "rank " + std::to_string(rank()) + ", parameter 'words.weight'");
  CHECK(error.problems().front().what ==
        (is_sparse ? "got a dense gradient, and the processes average those of its embedding as sparse ones"
                   : "got a sparse gradient, and the processes average those of layers Embedding and "
                     "EmbeddingBag alone"));
}

TEST_CASE("drift: an embedding that is sparse on some ranks alone is refused when it is prepared",
          "[ranks]") {
  acc::Accelerator accelerator;
  const acc::Error error =
      caught_error([&] { accelerator.prepare(std::make_shared<WordsImpl>(rank() == 0)); });
  CHECK(error.problems().front().where == "parameter 'words.weight'");
  CHECK(error.problems().front().what.find(
            "of Float [4, 2] with sparse gradient, rank 1 has 'words.weight' of Float [4, 2]") !=
        std::string::npos);
}

TEST_CASE("drift: sparse gradients are refused by what cannot average them", "[ranks]") {
  const auto words = std::make_shared<WordsImpl>(true);
  {
    acc::Accelerator accelerator({.ddp = {.comm_hook = acc::CommHook::bf16}});
    CHECK(what_of([&] { accelerator.prepare(words); }) ==
          "has sparse gradients, which comm_hook cannot compress");
  }
  {
    acc::Accelerator accelerator;
    const auto half = std::make_shared<WordsImpl>(true);
    half->to(at::kHalf);
    CHECK(what_of([&] { accelerator.prepare(half); }) ==
          "has sparse gradients of Half, which LibTorch cannot add");
  }
  acc::Accelerator accelerator;
  auto model = accelerator.prepare(words);
  CHECK(what_of([&] { acc::join_uneven_inputs({model}, [] {}); }) ==
        "has sparse gradients, which join_uneven_inputs cannot average");
}

TEST_CASE("drift: sparse gradients are clipped by the norm of their values", "[ranks]") {
  acc::Accelerator accelerator;
  const auto words = std::make_shared<WordsImpl>(true);
  auto model = accelerator.prepare(words);
  // A row that is named twice has the sum of two gradients.
  const at::Tensor named = at::ones({2}, here().dtype(at::kLong));
  accelerator.backward(model(named, Use::layer).sum());
  CHECK(accelerator.clip_grad_norm_(words->parameters(), 1).item<double>() == Approx(std::sqrt(8.0)));
  CHECK(words->parameters()[0].grad().to_dense().norm().item<double>() == Approx(1));
}

TEST_CASE("drift: an unused parameter is named correctly after others were frozen", "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto model = accelerator.prepare(net);
  accelerator.backward(model(own_input(), /*skip=*/true).sum());
  for (const at::Tensor& parameter : net->first->parameters()) parameter.requires_grad_(false);
  const std::string message = what_of([&] { model(own_input()); });
  CHECK(message.starts_with("did not contribute to the last loss"));
  CHECK(message.ends_with(": second.weight, second.bias"));
}

TEST_CASE("drift: equal values at other positions are different parameters", "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto model = accelerator.prepare(net);
  {
    const at::NoGradGuard no_grad;
    if (rank() == 1) net->first->weight.copy_(net->first->weight.flip({0}));
  }
  CHECK(caught_error([&] { accelerator.check_parameters(); }).problems().front().where ==
        "parameter 'first.weight'");
}

TEST_CASE("drift: different values are reported by name, on request and at regular steps", "[ranks]") {
  acc::Accelerator accelerator({.check_parameters_every = 2});
  Net net;
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  accelerator.check_parameters();
  const auto step = [&] {
    optimizer.zero_grad();
    accelerator.backward(model(own_input()).sum());
    optimizer.step();
  };
  step();
  step();
  {
    const at::NoGradGuard no_grad;
    if (rank() == 1) net->second->bias.add_(0.5);
  }
  CHECK(std::string(caught_error([&] { accelerator.check_parameters(); }).what()) ==
        "parameter 'second.bias': its values on rank 1 differ from those on rank 0 (the processes' models "
        "have diverged: something changes the parameter on each process separately)");
  step();
  CHECK(what_of(step) == "its values on rank 1 differ from those on rank 0");
}

TEST_CASE("drift: a module that was replaced after prepare is named on all processes", "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  const auto step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(model(own_input()).sum());
    optimizer.step();
  };
  step();
  torch::nn::Linear other(2, 4);
  other->to(job().device());
  net->replace_module("first", other);
  const bool is_used = GENERATE(true, false);
  if (is_used) net->first = other;
  CHECK(std::string(caught_error(step).what())
            .starts_with("parameter 'first.weight': is another one than when the model was prepared"));
}

TEST_CASE("drift: a module that is not trained may be replaced after prepare", "[ranks]") {
  acc::Accelerator accelerator;
  const auto set_trained = [](torch::nn::Linear& layer, bool on) {
    for (at::Tensor& parameter : layer->parameters()) parameter.requires_grad_(on);
  };
  Net net;
  set_trained(net->first, false);
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->second->parameters(), 0.1));
  const auto step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(model(own_input()).sum());
    optimizer.step();
  };
  step();
  torch::nn::Linear other(2, 4);
  other->to(job().device());
  set_trained(other, false);
  net->first = net->replace_module("first", other);
  step();
  set_trained(other, true);
  CHECK(std::string(caught_error(step).what())
            .starts_with("parameter 'first.weight': is another one than when the model was prepared"));
}

TEST_CASE("drift: a module that was reassigned after prepare is named on all processes", "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  // The registered one gets no gradients any longer.
  net->first = torch::nn::Linear(2, 4);
  net->first->to(job().device());
  const auto step = [&, &model = model, &optimizer = optimizer] {
    optimizer.zero_grad();
    accelerator.backward(model(own_input()).sum());
    optimizer.step();
  };
  std::string message;
  for (int number = 0; number < 2 && message.empty(); ++number) {
    const std::string text = caught_error(step).what();
    if (text != "none") message = text;
  }
  CHECK(message.find("first.weight") != std::string::npos);
}

TEST_CASE("drift: a layer that is registered twice is updated once, with the whole gradient", "[ranks]") {
  acc::Accelerator accelerator;
  acc::set_seed(5);
  TiedNet net;
  TiedNet alone;
  alone->to(job().device());
  copy_weights(*net, *alone);
  REQUIRE(net->parameters().size() == 4);
  auto [model, optimizer] = accelerator.prepare(
      net, torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)));
  CHECK(optimizer.native().param_groups()[0].params().size() == 2);
  torch::optim::SGD by_hand({alone->in->weight, alone->in->bias},
                            torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int number = 0; number < 3; ++number) {
    optimizer.zero_grad();
    accelerator.backward(model(own_input(number)).square().mean());
    const double norm = accelerator.clip_grad_norm_(net->parameters(), 100).item<double>();
    optimizer.step();
    by_hand.zero_grad();
    at::Tensor loss = at::zeros({}, here());
    for (int peer = 0; peer < size(); ++peer)
      loss = loss + alone(at::full({2, 2}, peer + 1 + number, here())).square().mean() / size();
    loss.backward();
    const double expected = std::sqrt(alone->in->weight.grad().square().sum().item<double>() +
                                      alone->in->bias.grad().square().sum().item<double>());
    CHECK(std::abs(norm - expected) < 1e-5 * expected);
    by_hand.step();
  }
  CHECK(net->in->weight.allclose(alone->in->weight, 1e-5, 1e-6));
  CHECK(same_everywhere(*net));
}

TEST_CASE("drift: collective operations after the end of training are an error", "[ranks]") {
  acc::Accelerator accelerator;
  accelerator.end_training();
  accelerator.end_training();
  const std::string departure = "this process has left the job: collective operations are no longer possible";
  CHECK(what_of([&] { accelerator.gather(at::ones({1})); }) == departure);
  CHECK(what_of([&] { accelerator.wait_for_everyone(); }) == departure);
  job().wait_for_everyone();
}
