// SPDX-License-Identifier: Apache-2.0
// Data parallelism on several processes, each of which runs all cases in this order. tests/parity/ddp checks
// that the numbers equal Python's.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "acc/runtime/data/tensor_batches.hpp"
#include "acc/runtime/parallel/join.hpp"
#include "acc/runtime/parallel/local_sgd.hpp"
#include "acc/runtime/parallel/sync_batch_norm.hpp"
#include "acc/runtime/recomputation/checkpoint_function.hpp"
#include "runtime/job.hpp"
#include "support/catch.hpp"

using namespace acc::test;  // NOLINT: the job and its net

namespace {

acc::Accelerator accelerator_with(const acc::DdpOptions& options) {
  return acc::Accelerator({.ddp = options});
}

bool same_everywhere(const at::Tensor& tensor) {
  return job().broadcast(tensor).equal(tensor);
}

struct Opaque {
  at::Tensor hidden;
};

struct OpaqueNetImpl : NetImpl {
  Opaque forward(const at::Tensor& x) { return {NetImpl::forward(x)}; }
};

struct NormNetImpl : torch::nn::Module {
  NormNetImpl() : norm(register_module("norm", torch::nn::BatchNorm2d(3))) {}
  at::Tensor forward(const at::Tensor& x) { return norm->forward(x); }
  torch::nn::BatchNorm2d norm;
};

struct ScaledNetImpl : torch::nn::Module {
  ScaledNetImpl()
      : norm(register_module("norm", torch::nn::BatchNorm2d(torch::nn::BatchNormOptions(3).affine(false)))),
        scale(register_parameter("scale", at::full({3, 1, 1}, 2.0))) {}
  at::Tensor forward(const at::Tensor& x) { return norm->forward(x) * scale; }
  torch::nn::BatchNorm2d norm;
  at::Tensor scale;
};

struct RecomputedNetImpl : NetImpl {
  at::Tensor forward(const at::Tensor& x) {
    return acc::checkpoint([this](const at::Tensor& in) { return NetImpl::forward(in); }, x);
  }
};

// The parameters after a few steps, with gradients of two batches in each.
template <class Module>
at::Tensor trained(const acc::DdpOptions& options) {
  auto accelerator = accelerator_with(options);
  acc::set_seed(7);
  const auto net = std::make_shared<Module>();
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  for (int step = 0; step < 3; ++step) {
    const at::Tensor x = at::full({1, 2}, step + rank(), here());
    if (!options.static_graph) {
      const acc::NoSync alone = model.no_sync();
      accelerator.backward(model(x + 1).sum());
    }
    accelerator.backward(model(x).sum());
    optimizer.step();
    optimizer.zero_grad();
  }
  return flat(*net);
}

// The rows of `whole` that belong to this rank when rank r has `first + r` of them.
at::Tensor own_rows(const at::Tensor& whole, int first) {
  std::int64_t start = 0;
  for (int r = 0; r < rank(); ++r) start += first + r;
  return whole.narrow(0, start, first + rank());
}

bool close(const at::Tensor& a, const at::Tensor& b) {
  return a.allclose(b, 1e-5, 1e-5);
}

// A batch, and two nets that have trained on it.
template <class NormalizedNet>
struct WholeBatch {
  at::Tensor rows = {};
  std::shared_ptr<NormalizedNet> alone = {};
  std::shared_ptr<NormalizedNet> synchronized = {};
};

// Trains one net on the whole batch, and one on each process's rows of it, with a synchronized batch norm:
// what they compute must be equal.
template <class NormalizedNet>
WholeBatch<NormalizedNet> check_whole_batch(int first) {
  acc::set_seed(10);
  at::Tensor whole = at::randn({first * size() + size() * (size() - 1) / 2, 3, 4, 4}, here()) * 3 + 1;
  const at::Tensor weights = at::randn(whole.sizes(), here());
  auto alone = std::make_shared<NormalizedNet>();
  alone->to(job().device());
  whole.requires_grad_();
  const at::Tensor expected = alone->forward(whole);
  (expected * weights).sum().backward();

  auto net = std::make_shared<NormalizedNet>();
  acc::convert_sync_batchnorm(*net);
  auto model = job().prepare(net);
  const at::Tensor local_rows = own_rows(whole, first).detach().clone().requires_grad_();
  const at::Tensor output = model(local_rows);
  job().backward((output * own_rows(weights, first)).sum());

  CHECK(close(output, own_rows(expected, first)));
  CHECK(close(local_rows.grad(), own_rows(whole.grad(), first)));
  CHECK(close(net->norm->running_mean, alone->norm->running_mean));
  CHECK(close(net->norm->running_var, alone->norm->running_var));
  return {.rows = whole, .alone = alone, .synchronized = net};
}

}  // namespace

TEST_CASE("ddp: it is called like the model that it wraps", "[parallel]") {
  Net net;
  net->to(job().device());
  acc::Ddp ddp(net.ptr(), job().process_group());
  const at::Tensor x = at::full({1, 2}, rank() + 1, here());
  {
    const at::NoGradGuard no_grad;
    CHECK(ddp(x, /*skip=*/true).equal(net->forward(x, /*skip=*/true)));
  }
  for (int step = 0; step < 2; ++step) ddp(x).sum().backward();
  CHECK(same_everywhere(ddp->first->weight.grad()));
  const at::Tensor averaged = net->first->weight.grad().clone();
  const auto alone = ddp.no_sync();
  ddp.forward(x).sum().backward();
  CHECK_FALSE(net->first->weight.grad().equal(averaged));
  CHECK(same_everywhere(net->first->weight.grad()) == (rank() == 0));
}

TEST_CASE("ddp: what backward computes again is trained as what forward kept", "[parallel]") {
  const acc::DdpOptions options =
      GENERATE(acc::DdpOptions{}, acc::DdpOptions{.bucket_cap_mb = 1e-5, .gradient_as_bucket_view = true},
               acc::DdpOptions{.find_unused_parameters = true}, acc::DdpOptions{.static_graph = true});
  CAPTURE(options.bucket_cap_mb, options.find_unused_parameters, options.static_graph);
  CHECK(trained<RecomputedNetImpl>(options).equal(trained<NetImpl>(options)));
}

TEST_CASE("ddp: a parameter that only some ranks use is trained with find_unused_parameters", "[parallel]") {
  REQUIRE(size() > 1);
  auto accelerator = accelerator_with({.find_unused_parameters = true});
  acc::set_seed(7);
  Net net;
  auto model = accelerator.prepare(net);
  const bool uses_second = rank() == size() - 1;
  for (int step = 0; step < 3; ++step) {
    for (at::Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
    accelerator.backward(model(at::ones({1, 2}, here()), /*skip=*/!uses_second).sum());
  }
  // The gradient 1 of one rank, divided by the number of ranks.
  CHECK(net->second->bias.grad().item<float>() == Approx(1.0 / size()));
  CHECK(same_everywhere(net->first->weight.grad()));
}

TEST_CASE("ddp: a parameter that no rank uses keeps no gradient with find_unused_parameters", "[parallel]") {
  auto accelerator = accelerator_with({.find_unused_parameters = true});
  Net net;
  auto model = accelerator.prepare(net);
  for (int step = 0; step < 2; ++step)
    accelerator.backward(model(at::ones({1, 2}, here()), /*skip=*/true).sum());
  CHECK_FALSE(net->second->weight.grad().defined());
  CHECK(net->first->weight.grad().defined());
}

TEST_CASE("ddp: find_unused_parameters reports an output without tensors", "[parallel]") {
  auto accelerator = accelerator_with({.find_unused_parameters = true});
  auto model = accelerator.prepare(std::make_shared<OpaqueNetImpl>());
  const acc::Error error = caught_error([&] { model(at::ones({1, 2}, here())); });
  CHECK(error.problems().front().what == "find_unused_parameters finds no tensor in the output of forward");
}

TEST_CASE("ddp: static_graph reports an output without tensors", "[parallel]") {
  auto accelerator = accelerator_with({.static_graph = true});
  auto model = accelerator.prepare(std::make_shared<OpaqueNetImpl>());
  const acc::Error error = caught_error([&] { model(at::ones({1, 2}, here())); });
  CHECK(error.problems().front().what == "static_graph finds no tensor in the output of forward");
}

TEST_CASE("ddp: static_graph refuses a forward whose gradients stay on the process", "[parallel]") {
  auto accelerator = accelerator_with({.static_graph = true});
  auto model = accelerator.prepare(Net());
  const acc::NoSync guard = model.no_sync();
  const acc::Error error = caught_error([&] { model(at::ones({1, 2}, here())); });
  CHECK(error.problems().front().what ==
        "static_graph needs a backward that averages gradients after each forward");
}

TEST_CASE("ddp: unused parameters are named, with the option that allows them", "[parallel]") {
  auto model = job().prepare(Net());
  const acc::Error error = caught_error([&] {
    job().backward(model(at::ones({1, 2}, here()), /*skip=*/true).sum());
    model(at::ones({1, 2}, here()));
  });
  const std::string text = error.what();
  INFO(text);
  CHECK(text.find("second.weight, second.bias") != std::string::npos);
  CHECK(text.find("DdpOptions::find_unused_parameters") != std::string::npos);
  CHECK(text.find("=True") == std::string::npos);
}

TEST_CASE("ddp: a buffer or parameter whose elements share memory is named", "[parallel]") {
  const auto error_with = [](const char* buffer, const char* parameter, const acc::DdpOptions& options) {
    auto accelerator = accelerator_with(options);
    Net net;
    const at::Tensor expanded = at::ones({1}, here()).expand({4});
    if (buffer != nullptr) net->register_buffer(buffer, expanded);
    if (parameter != nullptr) net->register_parameter(parameter, expanded, false);
    return std::string(caught_error([&] { accelerator.prepare(net); }).what());
  };
  const std::string text =
      ": is [4] with strides [0]: its elements share memory, so rank 0's values cannot be written to it "
      "(register a copy of what expand() returned, its clone())";
  CHECK(error_with("scale", nullptr, {}) == "buffer 'scale'" + text);
  CHECK(error_with(nullptr, "bias", {}) == "parameter 'bias'" + text);
  auto accelerator = accelerator_with({.broadcast_buffers = false});
  Net net;
  net->register_buffer("scale", at::ones({1}, here()).expand({4}));
  auto model = accelerator.prepare(net);
  accelerator.backward(model(at::ones({1, 2}, here())).sum());
}

TEST_CASE("ddp: communication hooks in half precision round gradients equally on all ranks", "[parallel]") {
  const auto hook = GENERATE(acc::CommHook::fp16, acc::CommHook::bf16);
  auto accelerator = accelerator_with({.comm_hook = hook});
  Net net;
  auto model = accelerator.prepare(net);
  const float value = 1.0F + 1.0F / 4096;  // not representable in either format
  accelerator.backward(model(at::full({1, 2}, value, here()), /*skip=*/false).sum() +
                       net->second->bias.sum() * (value - 1));
  const at::Tensor gradient = net->second->bias.grad();
  CHECK(gradient.item<float>() != value);
  CHECK(gradient.item<float>() == Approx(value).epsilon(0.01));
  CHECK(same_everywhere(net->first->weight.grad()));
}

TEST_CASE("join: processes without batches wait, and all end with the same model", "[parallel]") {
  acc::set_seed(8);
  Net net;
  auto [model, optimizer] = job().prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  acc::join_uneven_inputs({model}, [&] {
    for (int step = 0; step < 3 + 2 * rank(); ++step) {
      optimizer.zero_grad();
      job().backward(model(at::full({1, 2}, rank() + step, here())).sum());
      optimizer.step();
    }
  });
  CHECK(same_everywhere(flat(*net)));
  // Training continues as before.
  optimizer.zero_grad();
  job().backward(model(at::full({1, 2}, rank(), here())).sum());
  CHECK(same_everywhere(net->first->weight.grad()));
}

TEST_CASE("join: two models that are trained in turn end with the same parameters on all ranks",
          "[parallel]") {
  const bool by_all = GENERATE(true, false);
  Net local;
  Net two;
  auto [first, second] = job().prepare(local, two);
  at::Tensor last_gradient;
  const auto train = [&] {
    for (int step = 0; step < (rank() == 0 ? 2 : 1); ++step) {
      for (const auto& net : {local, two}) {
        for (at::Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
      }
      const at::Tensor x = at::ones({1, 2}, here());
      job().backward(first(x).sum());
      job().backward(second(x).sum());
      last_gradient = two->second->bias.grad().clone();
    }
  };
  acc::join_uneven_inputs({first, second}, train, by_all);
  // In its last step rank 0 is alone: its gradient 1 is divided by the number of all ranks, or by 1.
  if (rank() == 0) CHECK(last_gradient.item<float>() == Approx(by_all ? 1.0 / size() : 1.0));
  CHECK(same_everywhere(flat(*two)));
}

TEST_CASE("join: a frozen model gets the buffers of a process that had batches to the end", "[parallel]") {
  acc::set_seed(8);
  Net net;
  const auto norms = std::make_shared<NormNetImpl>();
  auto [model, optimizer] = job().prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  auto frozen = job().prepare(norms);
  for (const at::Tensor& parameter : norms->parameters()) parameter.requires_grad_(false);
  acc::join_uneven_inputs({model, frozen}, [&, &model = model, &optimizer = optimizer] {
    for (int step = 0; step < 2 + rank(); ++step) {
      optimizer.zero_grad();
      job().backward(model(at::full({1, 2}, rank() + step, here())).sum());
      frozen(at::full({1, 3, 2, 2}, rank() + step, here()));
      optimizer.step();
    }
  });
  CHECK(norms->norm->num_batches_tracked.item<std::int64_t>() == 1 + size());
  CHECK(same_everywhere(norms->norm->running_mean));
  CHECK(same_everywhere(flat(*net)));
}

TEST_CASE("join: synchronized batch norms in training are refused by name", "[parallel]") {
  const auto net = std::make_shared<ScaledNetImpl>();
  acc::convert_sync_batchnorm(*net);
  auto model = job().prepare(net);
  const auto joins = [&] { acc::join_uneven_inputs({model}, [] {}); };
  const acc::Error error = caught_error(joins);
  CHECK(error.problems().front().where == "norm");
  CHECK(error.problems().front().what ==
        "is a synchronized batch norm, which join_uneven_inputs does not support: its forward waits for all "
        "processes");
  net->norm->eval();
  CHECK_NOTHROW(joins());
}

TEST_CASE("join: join_uneven_inputs makes the loaders uneven for the duration of the call", "[parallel]") {
  Net net;
  const std::size_t samples = static_cast<std::size_t>(size()) + 1;
  auto [model, optimizer, loader] =
      job().prepare(net, torch::optim::SGD(net->parameters(), 0.1),
                    acc::DataLoader(acc::TensorDataset(at::ones({static_cast<std::int64_t>(samples), 2})),
                                    {.batch_size = 1}));
  CHECK(loader.size() == 2);
  job().join_uneven_inputs({model}, {.even_batches = false}, [&] {
    CHECK(loader.size() == (rank() == 0 ? 2 : 1));
    for (auto& [x] : loader) {
      optimizer.zero_grad();
      job().backward(model(x).sum());
      optimizer.step();
    }
  });
  CHECK(loader.size() == 2);
  CHECK(same_everywhere(flat(*net)));
  // With even batches there is nothing to wait for: no process notifies the others of a step.
  const at::NoGradGuard no_grad;
  job().join_uneven_inputs({model}, [&] {
    if (rank() == 0) model(at::ones({1, 2}, here()));
  });
}

TEST_CASE("join: an exception leaves it at once", "[parallel]") {
  auto model = job().prepare(Net());
  const auto fails = [] { throw std::runtime_error("of the program"); };
  CHECK_THROWS_WITH(acc::join_uneven_inputs({model}, fails), "of the program");
  CHECK_THROWS_WITH(job().join_uneven_inputs({model}, {.even_batches = false}, fails), "of the program");
  job().backward(model(at::ones({1, 2}, here())).sum());
  CHECK(same_everywhere(model->first->weight.grad()));
}

TEST_CASE("local_sgd: models diverge between averages and are equal at the end", "[parallel]") {
  acc::set_seed(9);
  Net net;
  auto [model, optimizer] = job().prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  acc::local_sgd(model, 2, [&](acc::LocalSGD& local_sgd) {
    for (int step = 1; step <= 3; ++step) {
      optimizer.zero_grad();
      job().backward(model(at::full({1, 2}, rank() + 1, here())).sum());
      optimizer.step();
      const at::Tensor sum = job().reduce(flat(*net));
      CHECK(same_everywhere(flat(*net)) == (rank() == 0));
      local_sgd.step();
      if (step == 2) CHECK(flat(*net).allclose(sum / size()));
    }
  });
  CHECK(same_everywhere(flat(*net)));
  const auto no_training = [](acc::LocalSGD&) {};
  CHECK(caught_error([&] { acc::local_sgd(model, 0, no_training); }).problems().front().where ==
        "local_sgd_steps");
}

TEST_CASE("local_sgd: an exception leaves it at once", "[parallel]") {
  auto model = job().prepare(Net());
  const auto fails = [](acc::LocalSGD&) { throw std::runtime_error("of the program"); };
  CHECK_THROWS_WITH(acc::local_sgd(model, 1, fails), "of the program");
  job().backward(model(at::ones({1, 2}, here())).sum());
  CHECK(same_everywhere(model->first->weight.grad()));
}

TEST_CASE("sync_batch_norm: outputs, gradients and running statistics are those of the whole batch",
          "[parallel]") {
  const int first = GENERATE(2, 0);  // rows of rank 0; the others have more
  const auto [whole, alone, net] = check_whole_batch<NormNetImpl>(first);
  CHECK(close(net->norm->weight.grad() * size(), alone->norm->weight.grad()));
  CHECK(close(net->norm->bias.grad() * size(), alone->norm->bias.grad()));
  CHECK(net->norm->num_batches_tracked.item<std::int64_t>() == 1);

  // In eval() processes do not communicate.
  net->eval();
  if (rank() == 0) CHECK(net->forward(whole.detach()).allclose(alone->forward(whole.detach())) == false);
}

TEST_CASE("sync_batch_norm: without weights of its own, it computes with the whole batch, too",
          "[parallel]") {
  const auto [whole, alone, net] = check_whole_batch<ScaledNetImpl>(2);
  CHECK(close(net->scale.grad() * size(), alone->scale.grad()));
}

TEST_CASE("sync_batch_norm: a batch that is empty on all processes leaves the running statistics alone",
          "[parallel]") {
  auto net = std::make_shared<NormNetImpl>();
  acc::convert_sync_batchnorm(*net);
  auto model = job().prepare(net);
  model(at::full({2, 3, 2, 2}, 5.0, here()));
  const at::Tensor mean = net->norm->running_mean.clone();
  const at::Tensor var = net->norm->running_var.clone();
  job().backward(model(at::ones({0, 3, 2, 2}, here())).sum());
  CHECK(net->norm->running_mean.equal(mean));
  CHECK(net->norm->running_var.equal(var));
  CHECK(net->norm->weight.grad().isfinite().all().item<bool>());
}

TEST_CASE("sync_batch_norm: a whole model in bf16 is normalized with statistics in float32", "[parallel]") {
  acc::set_seed(10);
  const at::Tensor x = at::randn({4, 3, 2, 2}, here()) * (rank() + 1);
  const auto train = [&](at::ScalarType type) {
    auto net = std::make_shared<NormNetImpl>();
    net->to(type);
    acc::convert_sync_batchnorm(*net);
    auto model = job().prepare(net);
    const at::Tensor out = model(x.to(type));
    job().backward((out * x.to(type)).sum());
    CHECK(out.scalar_type() == type);
    CHECK(net->norm->weight.grad().scalar_type() == type);
    return std::pair(out.detach().to(at::kFloat), net->norm->weight.grad().to(at::kFloat));
  };
  const auto [out, gradient] = train(at::kBFloat16);
  const auto [expected, expected_gradient] = train(at::kFloat);
  CHECK(out.allclose(expected, 2e-2, 2e-2));
  CHECK(gradient.allclose(expected_gradient, 2e-2, 0.2));
}

TEST_CASE("sync_batch_norm: a second derivative is refused, since it would be wrong", "[parallel]") {
  auto net = std::make_shared<NormNetImpl>();
  acc::convert_sync_batchnorm(*net);
  auto model = job().prepare(net);
  const at::Tensor x = at::randn({2, 3, 2, 2}, here()).requires_grad_();
  const at::Tensor gradient = torch::autograd::grad({model(x).square().sum()}, {x}, {}, /*retain_graph=*/true,
                                                    /*create_graph=*/true)[0];
  const acc::Error error = caught_error([&] { job().backward(gradient.square().sum()); });
  CHECK(error.problems().front().where == "synchronized batch norm");
}

TEST_CASE("sync_batch_norm: other batch norms stay as they are", "[parallel]") {
  acc::set_seed(static_cast<std::uint64_t>(rank()));
  auto plain = std::make_shared<NormNetImpl>();
  auto model = job().prepare(plain);
  model(at::randn({4, 3, 2, 2}, here()) + rank());
  CHECK(same_everywhere(plain->norm->running_mean) == (rank() == 0));
}

TEST_CASE("sync_batch_norm: a batch norm that cannot be distinguished from others is named", "[parallel]") {
  struct Outer : torch::nn::Module {
    Outer() {
      register_module("norm", torch::nn::BatchNorm1d(
                                  torch::nn::BatchNormOptions(2).affine(false).track_running_stats(false)));
    }
  };
  const auto outer = std::make_shared<Outer>();
  const acc::Error error = caught_error([&] { acc::convert_sync_batchnorm(*outer); });
  CHECK(error.problems().front().where == "norm");
}
