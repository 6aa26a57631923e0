// SPDX-License-Identifier: Apache-2.0
// Runs on several processes, each of which runs all cases in this order.
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/full.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/worker_env.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "runtime/job.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

using namespace acc::test;  // NOLINT: the job and its net

TEST_CASE("ranks: gather puts rows in rank order, and numbers become rows", "[ranks]") {
  REQUIRE(size() > 1);
  CHECK(job().gather(at::full({}, rank(), here(at::kLong))).equal(at::arange(size(), here(at::kLong))));
  const at::Tensor rows = job().gather(at::full({2, 3}, rank(), here()));
  CHECK(rows.sizes() == c10::IntArrayRef({2 * size(), 3}));
  CHECK(rows[2 * size() - 1][0].item<int>() == size() - 1);
}

// As of the logits of one class, where the last batch has one sample.
TEST_CASE("ranks: one element is sent whatever its stride is", "[ranks]") {
  const at::Tensor strided = at::full({1, 2}, rank(), here()).select(1, 1);
  REQUIRE(strided.stride(0) == 2);
  CHECK(job().gather(strided).equal(at::arange(size(), here())));
  CHECK(job().broadcast(strided).item<int>() == 0);
}

TEST_CASE("ranks: different shapes or types are the same error on every rank, and the job continues",
          "[ranks]") {
  const at::Tensor shapes = at::ones({rank() == 1 ? 2 : 3}, here());
  const at::Tensor types = at::ones({2}, here(rank() == 1 ? at::kFloat : at::kLong));
  const std::string same = ": every process must give the same shape and type, but rank 0 gives ";
  const auto message = [](const auto& function) { return std::string(caught_error(function).what()); };
  CHECK(message([&] { job().gather(shapes); }) == "gather" + same + "Float [3] and rank 1 gives Float [2]");
  CHECK(message([&] { job().reduce(shapes); }) == "reduce" + same + "Float [3] and rank 1 gives Float [2]");
  CHECK(message([&] { job().reduce(types); }) == "reduce" + same + "Long [2] and rank 1 gives Float [2]");
  CHECK(message([&] { job().broadcast(types); }) ==
        "broadcast" + same + "Long [2] and rank 1 gives Float [2]");
  CHECK(message([&] {
          job().pad_across_processes(rank() == 1 ? at::ones({2, 2}, here()) : at::ones({2}, here()),
                                     {.dim = 1});
        }) ==
        "pad_across_processes: every process must give the same type and number of dimensions, but rank 0 "
        "gives Float [2] and rank 1 gives Float [2, 2]");
  CHECK(job().gather(at::ones({1}, here())).numel() == size());
}

TEST_CASE("ranks: a tensor that one rank cannot send is the same error on every rank, and the job continues",
          "[ranks]") {
  const at::Tensor whole = at::ones({2, 2}, here());
  const auto message = [&](const at::Tensor& unsendable, const std::function<void(const at::Tensor&)>& call) {
    return std::string(caught_error([&] { call(rank() == 1 ? unsendable : whole); }).what());
  };
  const auto gather = [](const at::Tensor& tensor) { job().gather(tensor); };
  const auto reduce = [](const at::Tensor& tensor) { job().reduce(tensor); };
  const auto broadcast = [](const at::Tensor& tensor) { job().broadcast(tensor); };
  const auto pad = [](const at::Tensor& tensor) { job().pad_across_processes(tensor); };
  const std::string undefined = ": rank 1 gives an undefined tensor, which cannot be sent";
  CHECK(message({}, gather) == "gather" + undefined);
  CHECK(message({}, reduce) == "reduce" + undefined);
  CHECK(message({}, broadcast) == "broadcast" + undefined);
  CHECK(message({}, pad) == "pad_across_processes" + undefined);
  CHECK(message(whole.to_sparse(), gather) == "gather: rank 1 gives a sparse tensor, which cannot be sent");
  CHECK(message(at::ones({2, 2}, at::kMeta), gather) ==
        "gather: rank 1 gives a tensor of the meta device, which cannot be sent");
  CHECK(message(at::ones(std::vector<std::int64_t>(17, 1), here()), gather) ==
        "gather: rank 1 gives a tensor with more than 16 dimensions, which cannot be sent");
  CHECK(std::string(caught_error([] { job().broadcast(at::ones({1}, here()), rank() == 1 ? 99 : 0); }).what())
            .find("rank 0 calls broadcast (from rank 0), rank 1 calls broadcast (from rank 99)") !=
        std::string::npos);
  CHECK(job().gather(at::ones({1}, here())).numel() == size());
}

TEST_CASE("ranks: reduce and broadcast reach every rank and leave the argument alone", "[ranks]") {
  const at::Tensor local = at::full({2}, rank() + 1, here(at::kDouble));
  CHECK(job().reduce(local)[0].item<double>() == size() * (size() + 1) / 2.0);
  CHECK(job().reduce(local, acc::ReduceOp::mean)[0].item<double>() == (size() + 1) / 2.0);
  CHECK(job().reduce(local, acc::ReduceOp::max)[0].item<double>() == size());
  CHECK(job().broadcast(local, size() - 1)[0].item<double>() == size());
  CHECK(local[0].item<double>() == rank() + 1);
}

TEST_CASE("ranks: reduce supports each type, or reports on every rank what to do", "[ranks]") {
  const auto one_of = [](at::ScalarType type) { return at::ones({2}, here()).to(type); };
  for (const auto type : {at::kByte, at::kChar, at::kInt, at::kLong, at::kHalf, at::kBFloat16, at::kFloat,
                          at::kDouble, at::kComplexFloat, at::kComplexDouble}) {
    const at::Tensor sum = job().reduce(one_of(type));
    CHECK(sum.scalar_type() == type);
    CHECK(sum.to(at::kComplexDouble).equal(at::full({2}, size(), here(at::kComplexDouble))));
  }
  const at::Tensor phase = at::full({2}, c10::complex<double>(0, rank()), here(at::kComplexDouble)).conj();
  CHECK(job().reduce(phase)[1].item<c10::complex<double>>().imag() == -size() * (size() - 1) / 2);
  const at::Tensor local = at::full({1}, rank() == 1, here(at::kBool));
  CHECK(job().reduce(local).view(at::kByte).item<int>() == 1);
  CHECK(job().reduce(local, acc::ReduceOp::mean).item<float>() == 1.0F / static_cast<float>(size()));
  at::Tensor all_true = at::full({1}, true, here(at::kBool));
  job_state().process_group()->all_reduce(all_true, acc::ReduceOp::sum);
  CHECK(all_true.view(at::kByte).item<int>() == 1);

  const auto message = [&](at::ScalarType type, acc::ReduceOp op) {
    return std::string(caught_error([&] { job().reduce(one_of(type), op); }).what());
  };
  CHECK(message(at::kShort, acc::ReduceOp::sum) ==
        "reduce: Short cannot be reduced (convert the tensor first, as in tensor.to(at::kLong))");
  CHECK(message(at::kFloat8_e4m3fn, acc::ReduceOp::mean) ==
        "reduce: Float8_e4m3fn cannot be reduced (convert the tensor first, as in tensor.to(at::kFloat))");
  CHECK(message(at::kComplexFloat, acc::ReduceOp::max) ==
        "reduce: ComplexFloat numbers have no maximum (reduce the absolute values)");
  CHECK(job().reduce(at::ones({1}, here())).item<int>() == size());
}

TEST_CASE("ranks: a mean does not overflow where its sum would", "[ranks]") {
  const auto mean = [](const at::Tensor& tensor) { return job().reduce(tensor, acc::ReduceOp::mean); };
  CHECK(mean(at::full({1}, 200, here(at::kByte))).equal(at::full({1}, 200, here())));
  CHECK(mean(at::full({1}, -100, here(at::kChar))).equal(at::full({1}, -100, here())));
  CHECK(mean(at::full({1}, 2'000'000'000, here(at::kInt))).equal(at::full({1}, 2e9, here())));
  CHECK(mean(at::full({1}, std::int64_t{1} << 62, here(at::kLong))).item<double>() == std::pow(2, 62));
  CHECK(mean(at::full({1}, 60000, here(at::kHalf))).equal(at::full({1}, 60000, here(at::kHalf))));
}

TEST_CASE(
    "ranks: processes that call different operations get the same error on every rank, and the job continues",
    "[ranks]") {
  const auto what_of = [](const std::function<void()>& function) {
    return caught_error(function).problems().front().what;
  };
  const std::string different = "the processes do not make the same calls: rank 0 calls ";
  const bool first = rank() == 0;
  const at::Tensor local = at::full({2}, rank(), here());
  CHECK(what_of([&] { job().broadcast(local, first ? 0 : 1); }) ==
        different + "broadcast (from rank 0), rank 1 calls broadcast (from rank 1)");
  CHECK(what_of([&] { job().reduce(local, first ? acc::ReduceOp::sum : acc::ReduceOp::max); }) ==
        different + "reduce (sum), rank 1 calls reduce (max)");
  CHECK(what_of([&] { first ? job().gather(local) : job().reduce(local); }) ==
        different + "gather, rank 1 calls reduce (sum)");
  CHECK(what_of([&] { job().pad_across_processes(local.unsqueeze(0), {.dim = first ? 0 : 1}); }) ==
        different + "pad_across_processes (dimension 0), rank 1 calls pad_across_processes (dimension 1)");
  CHECK(what_of([&] { job().broadcast_object(std::string("x"), first ? 0 : 1); }) ==
        different + "broadcast_object (from rank 0), rank 1 calls broadcast_object (from rank 1)");
  CHECK(what_of([&] {
          if (first)
            job().gather(local);
          else
            job().gather_object(std::vector<std::string>{"x"});
        }) == different + "gather, rank 1 calls gather_object");
  CHECK(what_of([&] { job().gather(std::vector<at::Tensor>(first ? 0 : 1, local)); }) ==
        different + "an operation without tensors, rank 1 calls gather");
  using Named = std::map<std::string, at::Tensor>;
  CHECK(
      what_of([&] {
        job().gather(first ? Named{{"a", local}, {"b", local}} : Named{{"a", local}, {"c", local}});
      }) ==
      "every process must give the same structure, but rank 0 gives {a: tensor, b: tensor} and rank 1 gives "
      "{a: tensor, c: tensor}");
  CHECK(what_of([&] { job().gather(std::vector<at::Tensor>(first ? 2 : 1, local)); }) ==
        "every process must give the same structure, but rank 0 gives [tensor, tensor] and rank 1 gives "
        "[tensor]");
  CHECK(what_of([&] { job().broadcast(local, 7); }).starts_with("there is no rank 7: the ranks are 0 to "));
  CHECK(job().gather(local).size(0) == 2 * job().num_processes());
}

TEST_CASE("ranks: a maximum is NaN if one of the values is, whoever has it", "[ranks]") {
  for (const int holder : {0, job().num_processes() - 1}) {
    const at::Tensor local = at::full({2}, rank() == holder ? NAN : 1, at::kFloat);
    CHECK(job().reduce(local, acc::ReduceOp::max).isnan().all().item<bool>());
  }
  CHECK(job()
            .reduce(at::full({2}, rank(), at::kDouble), acc::ReduceOp::max)
            .equal(at::full({2}, job().num_processes() - 1, at::kDouble)));
}

TEST_CASE("ranks: conjugates are sent as such", "[ranks]") {
  const at::Tensor local = at::complex(at::full({2}, rank(), here()), at::ones({2}, here()));
  const at::Tensor all = job().gather(local.conj());
  CHECK(all.slice(0, 2 * rank(), 2 * rank() + 2).equal(local.conj()));
  CHECK(job().gather(at::_neg_view(at::ones({1}, here()))).equal(-at::ones({job().num_processes()}, here())));
  CHECK(at::imag(job().reduce(local.conj()))[0].item<float>() == -static_cast<float>(job().num_processes()));
  CHECK(at::imag(job().broadcast(local.conj()))[0].item<float>() == -1);
}

TEST_CASE("ranks: gather_for_metrics returns each sample once, however many there are", "[ranks]") {
  const int samples = GENERATE(1, 7, 8, 23, 24);
  auto loader =
      job().prepare(acc::DataLoader(acc::TensorDataset(at::arange(samples, at::kLong)), {.batch_size = 4}));
  std::vector<at::Tensor> parts;
  for (auto& [numbers_of_batch] : loader) parts.push_back(job().gather_for_metrics(numbers_of_batch));
  CHECK(at::cat(parts).equal(at::arange(samples, here(at::kLong))));
}

TEST_CASE("ranks: loaders agree on the order although the processes were seeded differently", "[ranks]") {
  acc::set_seed(static_cast<std::uint64_t>(rank()));
  auto loader = job().prepare(
      acc::DataLoader(acc::TensorDataset(at::arange(40, at::kLong)), {.batch_size = 4, .shuffle = true}));
  std::vector<at::Tensor> parts;
  for (auto& [numbers_of_batch] : loader) parts.push_back(job().gather_for_metrics(numbers_of_batch));
  CHECK(std::get<0>(at::cat(parts).sort()).equal(at::arange(40, here(at::kLong))));
}

TEST_CASE("ranks: training starts from rank 0's parameters", "[ranks]") {
  acc::set_seed(static_cast<std::uint64_t>(rank()));
  Net net;
  auto model = job().prepare(net);
  const at::Tensor local = flat(*net);
  CHECK(job().broadcast(local).equal(local));
}

TEST_CASE("ranks: gradients are those of the whole batch", "[ranks]") {
  const bool views = GENERATE(false, true);
  acc::Accelerator accelerator({.ddp = {.gradient_as_bucket_view = views}});
  acc::set_seed(3);
  const at::Tensor x = at::randn({4 * size(), 2}, here());
  Net alone;
  alone->to(job().device());
  Net net;
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < net->parameters().size(); ++i)
      net->parameters()[i].copy_(alone->parameters()[i]);
  }
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  torch::optim::SGD sgd(alone->parameters(), 0.1);
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    accelerator.backward(model(x.slice(0, 4 * rank(), 4 * rank() + 4)).square().mean());
    optimizer.step();
    sgd.zero_grad();
    alone->forward(x).square().mean().backward();
    sgd.step();
  }
  CHECK(flat(*net).allclose(flat(*alone), 1e-6, 1e-6));
}

TEST_CASE("ranks: under no_sync gradients are accumulated locally, and the next step averages the sum",
          "[ranks]") {
  acc::set_seed(4);
  Net net;
  auto model = job().prepare(net);
  const at::Tensor x = at::full({1, 2}, rank() + 1, here());
  {
    const acc::NoSync guard = model.no_sync();
    job().backward(model(x).sum());
  }
  const at::Tensor local = net->second->bias.grad().clone();
  CHECK(local.item<float>() == 1);
  const at::Tensor apart = net->first->weight.grad().clone();
  CHECK(job().broadcast(apart).equal(apart) == (rank() == 0));
  job().backward(model(x).sum());
  const at::Tensor together = net->first->weight.grad();
  CHECK(job().broadcast(together).equal(together));
  CHECK(net->second->bias.grad().item<float>() == 2);
}

TEST_CASE("ranks: whichever of several no_sync ends last, gradients are averaged again", "[ranks]") {
  Net net;
  auto model = job().prepare(net);
  const auto averages = [&] { return model.distributed()->synchronizes(); };
  auto guard = std::make_unique<acc::NoSync>(model.distributed());
  guard = std::make_unique<acc::NoSync>(model.distributed());  // begins before the first one ends
  CHECK_FALSE(averages());
  guard.reset();
  CHECK(averages());
  acc::Accelerator accelerator({.gradient_accumulation_steps = 2});
  auto other = accelerator.prepare(Net());
  {
    const auto first = accelerator.accumulate(other, other);
  }
  CHECK(other.distributed()->synchronizes());
}

TEST_CASE("ranks: after trigger_sync_in_backward a backward averages although its forward ran under no_sync",
          "[ranks]") {
  const auto net = std::make_shared<torch::nn::LinearImpl>(1, 1);
  auto model = job().prepare(net);
  const double mean = (size() + 1) / 2.0;  // the mean of all ranks' inputs
  const auto forward = [&](double times) {
    return model(at::full({1, 1}, times * (rank() + 1), here())).sum();
  };
  const auto gradient = [&] { return net->weight.grad().item<float>(); };
  for (int step = 0; step < 3; ++step) {
    net->zero_grad();
    const auto [first, second] = [&] {
      const acc::NoSync guard = job().no_sync(model);
      return std::pair{forward(1), forward(10)};
    }();
    job().backward(first);
    CHECK(gradient() == static_cast<float>(rank() + 1));
    job().trigger_sync_in_backward(model);
    job().backward(second);
    CHECK(gradient() == Approx(11 * mean));
  }
  net->zero_grad();
  job().backward(forward(2));
  CHECK(gradient() == Approx(2 * mean));
}

TEST_CASE("ranks: trigger_sync_in_backward averages gradients of parameters that changed after prepare",
          "[ranks]") {
  const auto net = std::make_shared<torch::nn::LinearImpl>(1, 1);
  const bool is_converted = GENERATE(true, false);
  net->weight.requires_grad_(is_converted);
  auto model = job().prepare(net);
  if (is_converted) {
    net->to(at::kDouble);
    net->to(at::kFloat);
  }
  net->weight.requires_grad_(true);
  const at::Tensor output = [&] {
    const acc::NoSync guard = job().no_sync(model);
    return model(at::full({1, 1}, rank() + 1, at::kFloat)).sum();
  }();
  job().trigger_sync_in_backward(model);
  job().backward(output);
  CHECK(net->weight.grad().item<float>() == Approx((size() + 1) / 2.0));
}

TEST_CASE("ranks: trigger_sync_in_backward refuses options that must be known in forward", "[ranks]") {
  const auto refused = [](const acc::DdpOptions& options) {
    acc::Accelerator accelerator({.ddp = options});
    const auto model = accelerator.prepare(Net());
    return caught_error([&] { accelerator.trigger_sync_in_backward(model); }).problems().front().what;
  };
  CHECK(refused({.find_unused_parameters = true}) ==
        "find_unused_parameters requires forward to know that backward averages gradients");
  CHECK(refused({.static_graph = true}) ==
        "static_graph requires forward to know that backward averages gradients");
}

TEST_CASE("ranks: a batch norm's buffers follow rank 0", "[ranks]") {
  auto norm = std::make_shared<torch::nn::BatchNorm1dImpl>(2);
  auto model = job().prepare(norm);
  for (int step = 0; step < 2; ++step)
    job().backward(model(at::randn({8, 2}, here()).add(rank())).square().sum());
  const at::Tensor local = norm->running_mean.clone();
  CHECK(job().broadcast(local).equal(local) == (rank() == 0));
  norm->eval();
  model(at::ones({8, 2}, here()));
  CHECK(job().broadcast(norm->running_mean).equal(norm->running_mean));
}

TEST_CASE("ranks: buffers of any type are sent, and their order is kept", "[ranks]") {
  std::vector<at::Tensor> buffers;
  for (const auto type : {at::kShort, at::kFloat, at::kComplexFloat, at::kBool, at::kUInt16})
    buffers.push_back(at::full({2, 3}, rank() == 0 ? 1 : 0, here()).to(type).t());
  job_state().process_group()->broadcast(buffers, 0);
  for (const at::Tensor& one : buffers) CHECK(one.to(at::kComplexFloat).eq(1).all().item<bool>());
}

TEST_CASE("ranks: a parameter with another shape on one rank is named on every rank", "[ranks]") {
  const acc::Error error = caught_error([] { job().prepare(Net(rank() == 1 ? 5 : 4)); });
  CHECK(error.problems().front().where == "parameter 'first.weight'");
  CHECK(error.problems().front().what.ends_with(
      ": rank 0 has 'first.weight' of Float [4, 2], rank 1 has 'first.weight' of Float [5, 2]"));
  CHECK(job().gather(at::ones({1}, here())).numel() == size());
}

TEST_CASE("ranks: a parameter with another memory format on one rank is named on every rank", "[ranks]") {
  torch::nn::Conv2d net(torch::nn::Conv2dOptions(2, 3, 2));
  if (rank() == 1) net->weight.set_data(net->weight.contiguous(at::MemoryFormat::ChannelsLast));
  const acc::Error error = caught_error([&] { job().prepare(net); });
  CHECK(error.problems().front().what.ends_with(
      ": rank 0 has 'weight' of Float [3, 2, 2, 2], "
      "rank 1 has 'weight' of Float [3, 2, 2, 2] with strides [8, 1, 4, 2]"));
}

TEST_CASE("ranks: gradients are averaged rightly after a parameter got another memory format", "[ranks]") {
  const bool views = GENERATE(false, true);
  acc::Accelerator accelerator({.ddp = {.gradient_as_bucket_view = views}});
  acc::set_seed(3);
  const at::Tensor x = at::randn({size(), 2, 4, 4}, here());
  torch::nn::Conv2d net(torch::nn::Conv2dOptions(2, 3, 2));
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.01));
  for (int step = 0; step < 4; ++step) {
    if (step == 2) net->weight.set_data(net->weight.detach().contiguous(at::MemoryFormat::ChannelsLast));
    const at::Tensor weight = net->weight.detach().contiguous().clone().requires_grad_();
    at::Tensor{at::conv2d(x, weight, net->bias.detach()).square().mean()}.backward();
    optimizer.zero_grad();
    accelerator.backward(model(x.slice(0, rank(), rank() + 1)).square().mean());
    CHECK(net->weight.grad().allclose(weight.grad(), 1e-5, 1e-6));
    optimizer.step();
  }
}

TEST_CASE("ranks: parameters that do not contribute to the loss are named", "[ranks]") {
  auto model = job().prepare(Net());
  const at::Tensor x = at::ones({1, 2}, here());
  const acc::Error error = caught_error([&] {
    job().backward(model(x, /*skip=*/true).sum());
    model(x);
  });
  CHECK(error.problems().front().what.find("second.weight, second.bias") != std::string::npos);
}

TEST_CASE("ranks: all processes load what the main process saved", "[ranks]") {
  acc::set_seed(5);
  auto model = job().prepare(Net());
  // All processes use the folder name of the main process.
  at::Tensor name = at::full({128}, 0, at::kByte);
  const std::string folder = acc::test::temporary_folder().string();
  std::copy(folder.begin(), folder.end(), name.mutable_data_ptr<std::uint8_t>());
  name = job().broadcast(name);
  const std::filesystem::path file =
      std::filesystem::path(reinterpret_cast<const char*>(name.const_data_ptr<std::uint8_t>())) /
      "model.safetensors";
  job().save_model(model, file);
  job().wait_for_everyone();
  acc::set_seed(6);
  auto loaded = job().prepare(Net());
  job().load_model(loaded, file);
  CHECK(flat(*loaded.module()).equal(flat(*model.module())));
  job().wait_for_everyone();
}

// Breaks the job, so it runs in a separate job.
TEST_CASE("ranks: a lost process is reported as lost", "[.lost]") {
  job().wait_for_everyone();
  if (rank() != 0) std::_Exit(0);
  const acc::Error error = caught_error([] { job().gather(at::ones({1}, here())); });
  INFO(error.what());
  CHECK(error.kind() == acc::ErrorKind::system);
  CHECK(error.problems().front().where == "rank 0, all_gather");
  CHECK(error.problems().front().what.starts_with("rank 1 ended or was lost: "));
}

TEST_CASE("ranks: a lost process ends backward with the same message", "[.lost_in_backward]") {
  auto model = job().prepare(Net());
  job().wait_for_everyone();
  if (rank() != 0) std::_Exit(0);
  const acc::Error error = caught_error([&] { job().backward(model(at::ones({1, 2}, here())).sum()); });
  INFO(error.what());
  CHECK(error.problems().front().where == "rank 0, backward");
  CHECK(error.problems().front().what.starts_with("rank 1 ended or was lost: "));
}

TEST_CASE("ranks: after a crash the next attempt joins through the launcher's store", "[.restarts]") {
  const acc::WorkerEnv worker = acc::read_worker_env(acc::Environment::of_process());
  CHECK(worker.use_agent_store);
  const at::Tensor sum = job().reduce(at::ones({1}, here()));
  CHECK(sum.item<float>() == static_cast<float>(worker.world_size));
  if (worker.restart_count < worker.max_restarts && rank() == worker.world_size - 1) std::_Exit(3);
  job().wait_for_everyone();
}
