// SPDX-License-Identifier: Apache-2.0
// Sharded training beside DDP, on several processes: losses, gradients, optimizers, and the order of blocks.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "acc/runtime/optim/learning_rate.hpp"
#include "runtime/sharded_stack.hpp"
#include "support/catch.hpp"

namespace sharded_training_test {

using namespace sharded_stack;

namespace {

using MakeOptimizer = std::function<std::shared_ptr<torch::optim::Optimizer>(const std::vector<at::Tensor>&)>;

struct Training {
  acc::AcceleratorOptions options = {};
  Shape shape = {};
  MakeOptimizer make_optimizer = adamw;
  int steps = 12;
  int batches = 1;
  double max_norm = 0;
};

// The mean loss of all processes after each batch, and in the end the sums of the parameters' squares.
std::vector<double> train(Training training) {
  training.options.gradient_accumulation_steps = training.batches;
  acc::Accelerator accelerator(training.options);
  Stack net = seeded_stack(training.shape);
  auto native = training.make_optimizer(net->parameters());
  auto [model, optimizer] = accelerator.prepare(net, native);
  std::vector<double> losses;
  for (int step = 0; step < training.steps * training.batches; ++step) {
    const auto batch = accelerator.accumulate(model);
    const at::Tensor x = batch_of(step);
    const at::Tensor loss = loss_of(model(x), x);
    accelerator.backward(loss);
    if (training.max_norm > 0 && accelerator.sync_gradients())
      losses.push_back(
          accelerator.clip_grad_norm_(model->parameters(), training.max_norm).template item<double>());
    optimizer.step();
    optimizer.zero_grad();
    losses.push_back(accelerator.reduce(loss.detach(), acc::ReduceOp::mean).template item<double>());
  }
  const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
  for (const at::Tensor& parameter : model->parameters())
    losses.push_back(parameter.detach().to(at::kDouble).square().sum().item<double>());
  return losses;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return 1e9;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
  return most;
}

// As DDP, but for the order in which more than two processes' gradients are added.
double limit() {
  return size() == 2 ? 1e-6 : 2e-5;
}

void check_as_ddp(Training training) {
  const std::vector<double> expected = train(training);
  for (const int number : {2, 3}) {
    CAPTURE(number);
    Training same = training;
    same.options = sharded(number, training.options);
    CHECK(difference(train(same), expected) <= limit());
  }
}

}  // namespace

TEST_CASE("sharded: the losses are DDP's", "[ranks]") {
  REQUIRE(size() > 1);
  check_as_ddp({});
}

TEST_CASE("sharded: tied and frozen parameters train as with DDP", "[ranks]") {
  check_as_ddp({.shape = {.tied = true}});
  check_as_ddp({.shape = {.frozen = true}});
}

TEST_CASE("sharded: blocks that backward computes again are gathered again, and train as without",
          "[ranks]") {
  for (const bool tied : {false, true}) {
    for (const int number : {2, 3}) {
      CAPTURE(tied, number);
      Training training{.options = sharded(number), .shape = {.tied = tied}};
      const std::vector<double> expected = train(training);
      training.shape.checkpoints = true;
      CHECK(train(training) == expected);
    }
  }
}

TEST_CASE("sharded: clipping and accumulation give DDP's numbers", "[ranks]") {
  check_as_ddp({.steps = 6, .batches = 3, .max_norm = 0.3});
}

TEST_CASE("sharded: the norm counts gradients of parameters that no optimizer has, as with DDP", "[ranks]") {
  const bool resets_all = GENERATE(true, false);
  const auto norms = [&](const acc::AcceleratorOptions& options) {
    acc::Accelerator accelerator(options);
    Stack net = seeded_stack();
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->out->parameters(), 0.1));
    std::vector<double> values;
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      if (resets_all) model->zero_grad();
      const at::Tensor x = batch_of(step);
      accelerator.backward(loss_of(model(x), x));
      values.push_back(accelerator.clip_grad_norm_(model->parameters(), 0.05).item<double>());
      optimizer.step();
    }
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    values.push_back(flat(*net).square().sum().item<double>());
    return values;
  };
  const std::vector<double> expected = norms({});
  for (const int number : {2, 3}) {
    CAPTURE(number, resets_all);
    CHECK(difference(norms(sharded(number)), expected) <= limit());
  }
}

TEST_CASE("sharded: parameters of ignored modules are rank 0's, and belong to the optimizer as with DDP",
          "[ranks]") {
  const auto results = [](acc::AcceleratorOptions options) {
    if (options.fsdp) options.fsdp->ignored_modules = "block1|words";
    acc::Accelerator accelerator(options);
    acc::set_seed(static_cast<std::uint64_t>(7 + rank()));
    Stack net;
    for (const auto& item : net->named_parameters())
      if (item.key().starts_with("block1.") || item.key().starts_with("words."))
        item.value().set_requires_grad(false);
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
    std::vector<double> values = {net->words->weight.square().sum().item<double>()};
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      const at::Tensor x = batch_of(step);
      const at::Tensor loss = loss_of(model(x), x);
      accelerator.backward(loss);
      optimizer.step();
      values.push_back(accelerator.reduce(loss.detach(), acc::ReduceOp::mean).item<double>());
    }
    if (options.fsdp) {
      net->words->weight.set_requires_grad(true);
      const acc::Error error = caught_error([&, &model = model] { model(batch_of(0)); });
      CHECK(error.problems().front().where == "parameter 'words.weight'");
      CHECK(error.problems().front().what.starts_with("was unfrozen after the model was prepared"));
    }
    return values;
  };
  const std::vector<double> expected = results({});
  for (const int number : {2, 3}) {
    CAPTURE(number);
    CHECK(difference(results(sharded(number)), expected) <= limit());
  }
}

TEST_CASE("sharded: every element-wise optimizer steps on shards as on the whole", "[ranks]") {
  using Parameters = std::vector<at::Tensor>;
  check_as_ddp({.make_optimizer = [](const Parameters& parameters) {
    return std::make_shared<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.1).momentum(0.9));
  }});
  check_as_ddp({.make_optimizer = [](const Parameters& parameters) {
    return std::make_shared<torch::optim::Adam>(parameters, torch::optim::AdamOptions(1e-2).amsgrad(true));
  }});
  check_as_ddp({.make_optimizer = [](const Parameters& parameters) {
    return std::make_shared<torch::optim::RMSprop>(parameters, torch::optim::RMSpropOptions(1e-3));
  }});
  check_as_ddp({.make_optimizer = [](const Parameters& parameters) {
    auto options = torch::optim::AdagradOptions(1e-2).initial_accumulator_value(0.1);
    return std::make_shared<torch::optim::Adagrad>(parameters, options);
  }});
}

TEST_CASE("sharded: two optimizers of one model share its gradients, as with DDP", "[ranks]") {
  const auto norms = [](const acc::AcceleratorOptions& options) {
    acc::Accelerator accelerator(options);
    Stack net = seeded_stack();
    const auto sgd = [&] { return torch::optim::SGD(net->parameters(), 0.1); };
    auto [model, first] = accelerator.prepare(net, sgd());
    acc::Optimizer second = accelerator.prepare(sgd());
    std::vector<double> values;
    for (int step = 0; step < 4; ++step) {
      const at::Tensor x = batch_of(step);
      accelerator.backward(loss_of(model(x), x));
      values.push_back(accelerator.clip_grad_norm_(model->parameters(), 1e9).item<double>());
      acc::Optimizer& one = step == 1 ? first : second;
      one.step();
      one.zero_grad();
    }
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    values.push_back(flat(*net).square().sum().item<double>());
    return values;
  };
  const std::vector<double> expected = norms({});
  for (const int number : {2, 3}) CHECK(difference(norms(sharded(number)), expected) <= limit());
}

TEST_CASE("sharded: the module's own zero_grad resets gradients, as with DDP", "[ranks]") {
  const bool after_forward = GENERATE(false, true);
  const bool to_none = GENERATE(true, false);
  const auto losses = [&](const acc::AcceleratorOptions& options) {
    acc::Accelerator accelerator(options);
    Stack net = seeded_stack();
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
    {
      // These are not averaged yet when they are reset.
      const acc::NoSync alone = model.no_sync();
      const at::Tensor x = batch_of(9);
      accelerator.backward(loss_of(model(x), x));
    }
    std::vector<double> values;
    for (int step = 0; step < 4; ++step) {
      if (!after_forward) model->zero_grad(to_none);
      // Some parameters have a gradient of the step before only.
      net->order = step == 2 ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2, 3};
      const at::Tensor x = batch_of(step);
      const at::Tensor loss = loss_of(model(x), x);
      if (after_forward) model->zero_grad(to_none);
      accelerator.backward(loss);
      values.push_back(accelerator.clip_grad_norm_(model->parameters(), 0.5).item<double>());
      optimizer.step();
      values.push_back(accelerator.reduce(loss.detach(), acc::ReduceOp::mean).item<double>());
    }
    return values;
  };
  acc::AcceleratorOptions ddp;
  ddp.ddp.find_unused_parameters = true;
  const std::vector<double> expected = losses(ddp);
  for (const int number : {2, 3}) {
    CAPTURE(number, after_forward, to_none);
    CHECK(difference(losses(sharded(number)), expected) <= limit());
  }
}

TEST_CASE("sharded: a parameter's own gradient stands for those in the shards, and cannot be changed",
          "[ranks]") {
  acc::Accelerator accelerator(sharded(GENERATE(2, 3)));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const at::Tensor x = batch_of(0);
  accelerator.backward(loss_of(model(x), x));
  CHECK(net->out->bias.grad().is_meta());
  SECTION("by an operator") {
    net->out->bias.grad().mul_(2);
  }
  SECTION("by another gradient") {
    net->out->bias.mutable_grad() = torch::ones({kWords});
  }
  const acc::Error error = caught_error([&, &optimizer = optimizer] { optimizer.step(); });
  CHECK(error.problems().front().where.ends_with("parameter 'out.bias'"));
  CHECK(error.problems().front().what.starts_with("its gradient was changed"));
  optimizer.zero_grad();
  CHECK_FALSE(net->out->bias.grad().defined());
}

TEST_CASE("sharded: an operator may take parameters of several units", "[ranks]") {
  struct PenalizedImpl : StackImpl {
    at::Tensor forward(const at::Tensor& x) {
      const at::Tensor& first = blocks[0]->up->weight;
      const at::Tensor& second = blocks[1]->up->weight;
      const at::Tensor all = at::cat({first.flatten(), second.flatten(), blocks[3]->up->weight.flatten()});
      const at::Tensor sum = all.square().sum() + (first + second).square().sum() +
                             first.mm(blocks[2]->down->weight).square().sum();
      return StackImpl::forward(x) * (1 + 1e-2 * sum);
    }
  };
  const auto losses = [](const acc::AcceleratorOptions& options) {
    acc::Accelerator accelerator(options);
    acc::set_seed(7);
    const auto net = std::make_shared<PenalizedImpl>();
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
    std::vector<double> values;
    for (int step = 0; step < 3; ++step) {
      const at::Tensor x = batch_of(step);
      const at::Tensor loss = loss_of(model(x), x);
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      values.push_back(loss.item<double>());
    }
    return values;
  };
  const std::vector<double> expected = losses({});
  for (const int number : {2, 3}) CHECK(difference(losses(sharded(number)), expected) <= limit());
}

TEST_CASE("sharded: evaluation gives the same as a whole model", "[ranks]") {
  const int number = GENERATE(2, 3);
  acc::Accelerator accelerator(sharded(number));
  Stack alone = whole_stack();
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const at::NoGradGuard no_grad;
  const at::Tensor x = batch_of(1);
  CHECK(model(x).equal(alone->forward(x)));
  CHECK(model(x).equal(alone->forward(x)));
}

TEST_CASE("sharded: under no_sync gradients stay here, and the next backward averages the sum", "[ranks]") {
  const bool triggered = GENERATE(false, true);
  const auto parameters_after_a_step = [triggered](const acc::AcceleratorOptions& options) {
    acc::Accelerator accelerator(options);
    Stack net = seeded_stack();
    auto [model, optimizer] =
        accelerator.prepare(net, torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.1)));
    {
      const acc::NoSync here = accelerator.no_sync(model);
      const at::Tensor x = batch_of(0);
      accelerator.backward(loss_of(model(x), x));
      if (triggered) {
        const at::Tensor last = batch_of(1);
        const at::Tensor loss = loss_of(model(last), last);
        accelerator.trigger_sync_in_backward(model);
        accelerator.backward(loss);
      }
    }
    if (!triggered) {
      const at::Tensor x = batch_of(1);
      accelerator.backward(loss_of(model(x), x));
    }
    optimizer.step();
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    return flat(*net);
  };
  const at::Tensor expected = parameters_after_a_step({});
  for (const int number : {2, 3}) {
    CAPTURE(number);
    CHECK(parameters_after_a_step(sharded(number)).allclose(expected, 1e-5, 1e-6));
  }
}

TEST_CASE("sharded: blocks that no process uses get no gradient, and the order may change together",
          "[ranks]") {
  const int number = GENERATE(2, 3);
  acc::Accelerator accelerator(sharded(number));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const at::Tensor before = accelerator.get_state_dict(model)["block3.up.weight"];
  const std::vector<std::vector<int>> orders = {{0, 1, 2}, {2, 0, 1}, {1, 1, 0}, {2}};
  for (std::size_t step = 0; step < orders.size(); ++step) {
    net->order = orders[step];
    const at::Tensor x = batch_of(static_cast<int>(step));
    accelerator.backward(loss_of(model(x), x));
    optimizer.step();
    optimizer.zero_grad();
  }
  const at::Tensor trained = accelerator.get_state_dict(model)["block3.up.weight"];
  if (rank() == 0) CHECK(trained.equal(before));
}

// The process group cannot be used after these two, which run alone.
TEST_CASE("sharded: processes that use the blocks in different orders get an error, not a hang",
          "[.orders]") {
  acc::Accelerator accelerator(sharded(3));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  net->order = rank() == 0 ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0, 2, 1, 3};
  const std::string text = caught_error([&] { (void)model(batch_of(0)); }).what();
  INFO(text);
  CHECK(text.find("the processes use the model differently: this one gathers 'block") != std::string::npos);
  CHECK(text.find("in the same order") != std::string::npos);
}

TEST_CASE("sharded: processes that divide a model differently get an error that says how", "[ranks]") {
  acc::AcceleratorOptions options = sharded(3);
  if (rank() == 0) options.fsdp->transformer_cls_to_wrap = {};
  acc::Accelerator accelerator(options);
  Stack net = seeded_stack();
  const acc::Error error = caught_error([&] { (void)accelerator.prepare(net, adamw(net->parameters())); });
  const std::string text = error.what();
  CHECK(text.starts_with(
      "the processes divide the model differently: rank 0 has the root with 27 parameters of "));
  CHECK(text.find(" elements, rank 1 has the root with 3 parameters of ") != std::string::npos);
  CHECK(text.ends_with(" elements (every process needs the same settings of sharding)"));
}

TEST_CASE("sharded: a process that uses fewer blocks than the others gets an error, too", "[.fewer]") {
  acc::Accelerator accelerator(sharded(3));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  if (rank() == 0) net->order = {0, 1};
  const acc::Error error = caught_error([&] {
    const at::Tensor x = batch_of(0);
    accelerator.backward(loss_of(model(x), x));
  });
  INFO(error.what());
  CHECK(std::string(error.what()).find("the processes use the model differently") != std::string::npos);
}

TEST_CASE("sharded: a backward that the program calls itself is finished when it returns", "[ranks]") {
  const int number = GENERATE(2, 3);
  const auto train = [number](bool directly, bool in_closure) {
    acc::Accelerator accelerator(sharded(number));
    Stack net = seeded_stack();
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
    std::vector<double> norms;
    for (int step = 0; step < 3; ++step) {
      const auto closure = [&, &model = model, &optimizer = optimizer] {
        const at::AutoGradMode with_graph(true);
        optimizer.zero_grad();
        const at::Tensor x = batch_of(step);
        const at::Tensor loss = loss_of(model(x), x);
        directly ? loss.backward() : accelerator.backward(loss);
        norms.push_back(accelerator.clip_grad_norm_(net->parameters(), 0.5).item<double>());
        return loss;
      };
      if (in_closure) {
        optimizer.step(closure);
      } else {
        closure();
        optimizer.step();
      }
    }
    const auto gathered = accelerator.gathered_parameters(model);
    norms.push_back(flat(*net).square().sum().item<double>());
    return norms;
  };
  const std::vector<double> expected = train(false, false);
  CHECK(expected.front() > 0);
  CHECK(train(true, false) == expected);
  CHECK(train(true, true) == expected);
  CHECK(train(false, true) == expected);
}

TEST_CASE("sharded: a parameter without elements leaves its neighbours alone", "[ranks]") {
  struct Odd : torch::nn::Module {
    Odd()
        : first(register_parameter("first", at::ones({4}))),
          none(register_parameter("none", at::ones({0, 4}))),
          last(register_parameter("last", at::ones({4}))) {}
    at::Tensor forward(const at::Tensor& x) { return x * last + first + none.sum(); }
    at::Tensor first;
    at::Tensor none;
    at::Tensor last;
  };
  acc::Accelerator accelerator({.fsdp = acc::FsdpOptions{.reshard_after_forward = GENERATE(false, true)}});
  const auto net = std::make_shared<Odd>();
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  accelerator.backward(model(at::ones({4}, here())).sum());
  optimizer.step();
  const auto gathered = accelerator.gathered_parameters(model);
  CHECK(net->first.allclose(at::full({4}, 0.9, here())));
  CHECK(net->last.allclose(at::full({4}, 0.9, here())));
}

TEST_CASE("sharded: a parameter that no process uses is left alone, as by Python's fully_shard", "[ranks]") {
  struct Branches : torch::nn::Module {
    Branches()
        : first(register_module("first", torch::nn::Linear(4, 4))),
          second(register_module("second", torch::nn::Linear(4, 4))) {
      const at::AutoGradMode no_grad(false);
      for (at::Tensor& parameter : parameters()) parameter.fill_(0.1);
    }
    at::Tensor forward(const at::Tensor& x) {
      const at::Tensor y = first(x);
      return uses_second ? second(y) : y;
    }
    torch::nn::Linear first;
    torch::nn::Linear second;
    bool uses_second = false;
  };
  // The first element of each parameter after steps in which `second` is used by so many processes.
  const auto train = [](const acc::AcceleratorOptions& options, const std::vector<int>& users) {
    acc::Accelerator accelerator(options);
    const auto net = std::make_shared<Branches>();
    auto [model, optimizer] = accelerator.prepare(
        net, torch::optim::AdamW(net->parameters(), torch::optim::AdamWOptions(0.1).weight_decay(0.5)));
    for (const int number : users) {
      net->uses_second = rank() < number;
      accelerator.backward(model(at::ones({2, 4}) * (rank() + 1)).sum());
      optimizer.step();
      optimizer.zero_grad();
    }
    const auto gathered = accelerator.gathered_parameters(model);
    std::vector<double> values;
    for (const at::Tensor& one : net->parameters()) values.push_back(one.flatten()[0].item<double>());
    return values;
  };
  acc::AcceleratorOptions ddp;
  ddp.ddp.find_unused_parameters = true;
  for (const int number : {2, 3}) {
    CAPTURE(number);
    const acc::AcceleratorOptions options{.fsdp = acc::FsdpOptions{.reshard_after_forward = number == 3}};
    CHECK(difference(train(options, {0}), train(ddp, {0})) <= limit());
    CHECK(difference(train(options, {0, 1, 0, size()}), train(ddp, {0, 1, 0, size()})) <= limit());
    // Of fully_shard in torch 2.11.
    const std::vector<double> python = {-0.27056199, -0.27056196, 0.26145309, -0.10474999};
    if (size() == 2) CHECK(difference(train(options, {0, 2, 0, 2}), python) <= limit());
  }
}

TEST_CASE("sharded: buffers are rank 0's, and batch norms train as with DDP", "[ranks]") {
  struct NormedImpl : torch::nn::Module {
    NormedImpl()
        : first(register_module("first", torch::nn::Linear(4, 8))),
          norm(register_module("norm", torch::nn::BatchNorm1d(8))) {}
    at::Tensor forward(const at::Tensor& x) { return norm->forward(first->forward(x)); }
    torch::nn::Linear first;
    torch::nn::BatchNorm1d norm;
  };
  acc::Accelerator accelerator({.fsdp = acc::FsdpOptions{}});
  acc::set_seed(static_cast<std::uint64_t>(3 + rank()));
  const auto net = std::make_shared<NormedImpl>();
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  for (int step = 0; step < 3; ++step) {
    accelerator.backward(model(at::randn({6, 4}, here())).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  net->eval();
  const at::NoGradGuard no_grad;
  (void)model(at::ones({2, 4}, here()));
  const at::Tensor mean = net->norm->running_mean;
  CHECK(job_state().broadcast(mean).equal(mean));
}

TEST_CASE("sharded: LibTorch's own zero_grad and step work on shards", "[ranks]") {
  acc::Accelerator accelerator(sharded(3));
  Stack net = seeded_stack();
  auto native = adamw(net->parameters());
  auto [model, optimizer] = accelerator.prepare(net, native);
  for (int step = 0; step < 2; ++step) {
    native->zero_grad();
    const at::Tensor x = batch_of(step);
    accelerator.backward(loss_of(model(x), x));
    native->step();
  }
  const at::NoGradGuard no_grad;
  CHECK_FALSE(model(batch_of(0)).equal(whole_stack()->forward(batch_of(0))));
}

TEST_CASE("sharded: schedules and groups reach the shards", "[ranks]") {
  std::vector<double> rates;
  for (const int number : {0, 3}) {
    acc::Accelerator accelerator(number == 0 ? acc::AcceleratorOptions() : sharded(number));
    Stack net = seeded_stack();
    torch::optim::SGD sgd(net->parameters(), 0.5);
    acc::Scheduler schedule(sgd, acc::cosine_with_warmup(2, 20));
    auto [model, optimizer, scheduler] = accelerator.prepare(net, std::move(sgd), std::move(schedule));
    for (int step = 0; step < 5; ++step) {
      const at::Tensor x = batch_of(step);
      accelerator.backward(loss_of(model(x), x));
      optimizer.step();
      scheduler.step();
      optimizer.zero_grad();
    }
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    rates.push_back(flat(*net).to(at::kDouble).square().sum().item<double>());
  }
  CHECK(std::abs(rates[0] - rates[1]) <= limit() * rates[0]);
}

TEST_CASE("sharded: bf16 computes in bf16 and keeps and adds float32", "[ranks]") {
  const Training whole{.options = {.mixed_precision = acc::MixedPrecision::bf16}};
  const std::vector<double> expected = train(whole);
  std::vector<double> of_stage[2];
  for (const int number : {2, 3}) of_stage[number - 2] = train({.options = sharded(number, whole.options)});
  CHECK(of_stage[0] == of_stage[1]);
  // Autocast keeps some operations in float32, where the parameters are bf16 here.
  CHECK(difference({of_stage[0].begin(), of_stage[0].begin() + 12},
                   {expected.begin(), expected.begin() + 12}) < 2e-2);
}

TEST_CASE("sharded: in bf16 some processes may average gradients that they kept, and others not", "[ranks]") {
  const bool drops = GENERATE(true, false);
  const auto change = [&](acc::MixedPrecision precision) {
    acc::Accelerator accelerator(sharded(drops ? 3 : 2, {.mixed_precision = precision}));
    Stack net = seeded_stack();
    const at::Tensor start = flat(*net);
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 5.0));
    {
      const acc::NoSync alone = model.no_sync();
      if (!drops && rank() == 0) net->order = {0, 1, 3};
      const at::Tensor x = batch_of(0);
      accelerator.backward(loss_of(model(x), x));
    }
    net->order.clear();
    if (drops && rank() == 1) optimizer.zero_grad();
    const at::Tensor x = batch_of(1);
    accelerator.backward(loss_of(model(x), x));
    optimizer.step();
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    return flat(*net) - start;
  };
  const at::Tensor expected = change(acc::MixedPrecision::no);
  CAPTURE(drops);
  CHECK((change(acc::MixedPrecision::bf16) - expected).norm().item<double>() <
        5e-2 * expected.norm().item<double>());
}

TEST_CASE("sharded: each of two models may be prepared with its optimizer behind it", "[ranks]") {
  const bool frees = GENERATE(true, false);
  acc::Accelerator accelerator({.fsdp = acc::FsdpOptions{.reshard_after_forward = frees}});
  torch::nn::Linear first(3, 2);
  torch::nn::Linear second(3, 2);
  auto [model, optimizer, other_model, other_optimizer] =
      accelerator.prepare(first, torch::optim::SGD(first->parameters(), 0.1), second,
                          torch::optim::SGD(second->parameters(), 0.1));
  const at::Tensor x = at::ones({1, 3}, here());
  const double before = other_model(x).sum().item<double>();
  accelerator.backward(other_model(x).sum());
  other_optimizer.step();
  CHECK(other_model(x).sum().item<double>() == Approx(before - 0.8));  // 0.1 for each weight and bias
}

TEST_CASE("sharded: zero_grad also resets gradients that are not averaged yet", "[ranks]") {
  const int number = GENERATE(2, 3);
  const bool alone = GENERATE(true, false);
  const bool throws = GENERATE(true, false);
  const auto train = [&](bool is_stopped) {
    acc::Accelerator accelerator(sharded(number));
    Stack net = seeded_stack();
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
    if (is_stopped) {
      std::optional<acc::NoSync> no_sync;
      if (alone) no_sync.emplace(model.distributed());
      const at::Tensor x = batch_of(0);
      // The gradients of the blocks after the second one are there.
      net->throws_in_backward = throws;
      const at::Tensor loss = loss_of(model(x), x);
      net->throws_in_backward = false;
      if (throws) {
        CHECK_THROWS(accelerator.backward(loss));
      } else {
        accelerator.backward(loss);
      }
    }
    optimizer.zero_grad();
    for (int step = 1; step < 3; ++step) {
      const at::Tensor x = batch_of(step);
      accelerator.backward(loss_of(model(x), x));
      optimizer.step();
      optimizer.zero_grad();
    }
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    return flat(*net);
  };
  CAPTURE(number, alone, throws);
  CHECK(train(true).equal(train(false)));
}

TEST_CASE("sharded: two backwards through one graph add up, and gradients with a graph are refused",
          "[ranks]") {
  acc::Accelerator accelerator(sharded(GENERATE(2, 3)));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const at::Tensor x = batch_of(0);
  const auto norm = [&, &optimizer = optimizer] {
    const double total = accelerator.clip_grad_norm_(net->parameters(), 1e9).item<double>();
    optimizer.zero_grad();
    return total;
  };
  accelerator.backward(loss_of(model(x), x));
  const double once = norm();
  const at::Tensor loss = loss_of(model(x), x);
  accelerator.backward(loss, {.retain_graph = true});
  accelerator.backward(loss);
  CHECK(norm() == Approx(2 * once));
  const acc::Error error =
      caught_error([&] { accelerator.backward(loss_of(model(x), x), {.create_graph = true}); });
  CHECK(error.problems().front().what.starts_with("got a gradient with a graph of its own"));
  optimizer.zero_grad();
  accelerator.backward(loss_of(model(x), x));
  CHECK(norm() == Approx(once));
}

TEST_CASE("sharded: sparse gradients of which no layer tells are refused by name in backward", "[ranks]") {
  struct WordsImpl : torch::nn::Module {
    WordsImpl() : words(register_module("words", torch::nn::Embedding(4, 2))) {}
    at::Tensor forward(const at::Tensor& named) {
      return at::embedding(words->weight, named, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false,
                           /*sparse=*/true);
    }
    torch::nn::Embedding words;
  };
  acc::Accelerator accelerator({.fsdp = acc::FsdpOptions{}});
  const auto net = std::make_shared<WordsImpl>();
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  const acc::Error error = caught_error([&] { accelerator.backward(model(at::arange(3, at::kLong)).sum()); });
  CHECK(error.problems().front().where == "parameter 'words.weight'");
  CHECK(error.problems().front().what.starts_with("has sparse gradients"));
}

TEST_CASE("sharded: a module that is registered twice is stepped once", "[ranks]") {
  struct TwiceImpl : torch::nn::Module {
    TwiceImpl() : once(register_module("once", torch::nn::Linear(2, 1))) { register_module("again", once); }
    at::Tensor forward(const at::Tensor& x) { return once->forward(x) + once->forward(x); }
    torch::nn::Linear once;
  };
  for (const bool shards : {false, true}) {
    acc::AcceleratorOptions options;
    if (shards) options.fsdp = acc::FsdpOptions{};
    acc::Accelerator accelerator(options);
    const auto net = std::make_shared<TwiceImpl>();
    {
      const at::NoGradGuard no_grad;
      for (const at::Tensor& one : net->parameters()) one.fill_(1);
    }
    CHECK(net->parameters().size() == 4);
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 1.0));
    accelerator.backward(model(at::ones({1, 2}, here())).sum());
    optimizer.step();
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    CHECK(net->once->weight.eq(-1).all().item<bool>());
  }
}

TEST_CASE("sharded: a lost process ends the others with its rank", "[.lost]") {
  acc::Accelerator accelerator(sharded(3, {.process_group = {.timeout = std::chrono::minutes(1)}}));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  accelerator.wait_for_everyone();
  if (accelerator.process_index() != 0) std::_Exit(0);
  const acc::Error error = caught_error([&] {
    const at::Tensor x = at::arange(6, here(at::kLong)).reshape({2, 3});
    accelerator.backward(loss_of(model(x), x));
  });
  INFO(error.what());
  CHECK(error.problems().front().what.starts_with("rank 1 ended or was lost: "));
}

}  // namespace sharded_training_test
