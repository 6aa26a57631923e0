// SPDX-License-Identifier: Apache-2.0
// Runs on several processes, each of which runs all cases in this order.
#include "acc/runtime/accelerator/accelerator.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/comm/objects.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "acc/runtime/process/logger.hpp"
#include "runtime/process.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/printed.hpp"
#include "support/torch_tensor.hpp"

namespace {

using acc::test::error_of;
using acc::test::here;
using acc::test::job_state;
using acc::test::printed_to;
using acc::test::rank;
using acc::test::size;

std::vector<int> count_to(int end) {
  std::vector<int> numbers;
  for (int i = 0; i < end; ++i) numbers.push_back(i);
  return numbers;
}

// An object that may refuse to be written.
struct Secret {
  bool is_kept = false;

  friend void to_json(nlohmann::json& json, const Secret& secret) {
    if (secret.is_kept) throw std::runtime_error("is kept");
    json = false;
  }
  friend void from_json(const nlohmann::json& json, Secret& secret) { json.get_to(secret.is_kept); }
};

at::Tensor local_tensor(double times = 1) {
  return at::full({}, rank() * times, here());
}

struct NetImpl : torch::nn::Module {
  NetImpl() : fc(register_module("fc", torch::nn::Linear(2, 1))) {}
  at::Tensor forward(const at::Tensor& x) { return fc->forward(x); }
  torch::nn::Linear fc;
};
TORCH_MODULE(Net);

// A folder that the main process creates, the same on all processes.
std::filesystem::path shared_folder() {
  return job_state().broadcast_object(acc::test::temporary_folder().string());
}

}  // namespace

TEST_CASE("accelerator: each process knows its rank", "[ranks]") {
  REQUIRE(size() > 1);
  CHECK(job_state().distributed());
  CHECK(job_state().distributed_type() ==
        (job_state().device().is_cpu() ? acc::DistributedType::multi_cpu : acc::DistributedType::multi_gpu));
  CHECK(job_state().is_main_process() == (rank() == 0));
  CHECK(job_state().is_last_process() == (rank() == size() - 1));
}

TEST_CASE("accelerator: lists are split, padded and gathered", "[ranks]") {
  const std::vector<int> even = count_to(2 * size());
  CHECK(job_state().split_between_processes(even) == std::vector<int>{2 * rank(), 2 * rank() + 1});
  const std::vector<int> uneven = count_to(2 * size() - 1);
  const std::vector<int> padded = job_state().split_between_processes(uneven, true);
  CHECK(padded.size() == 2);
  std::vector<int> together = job_state().gather_object(padded);
  CHECK(together.back() == uneven.back());
  together.resize(uneven.size());
  CHECK(together == uneven);
  CHECK(job_state().gather_object(job_state().split_between_processes(count_to(17))) == count_to(17));
  CHECK(job_state().split_between_processes(count_to(17)).size() ==
        static_cast<std::size_t>(17 / size() + (rank() < 17 % size() ? 1 : 0)));
}

TEST_CASE("accelerator: tensors and tuples are split along their first dimension", "[ranks]") {
  const at::Tensor rows = at::arange(4 * size(), here(at::kLong)).reshape({2 * size(), 2});
  CHECK(job_state().gather(job_state().split_between_processes(rows)).equal(rows));
  const at::Tensor uneven = rows.slice(0, 0, 2 * size() - 1);
  const at::Tensor padded = job_state().gather(job_state().split_between_processes(uneven, true));
  CHECK(padded.slice(0, 0, 2 * size() - 1).equal(uneven));
  CHECK(padded[-1].equal(uneven[-1]));
  const auto [list, other, tensor] = job_state().split_between_processes(
      std::tuple(count_to(8), std::vector<std::string>(8, "x"), at::arange(8)));
  CHECK(list.size() == other.size());
  CHECK(static_cast<std::int64_t>(list.size()) == tensor.size(0));
  CHECK(tensor[0].item<int>() == list[0]);
}

TEST_CASE("accelerator: structures of tensors are gathered, reduced and broadcast part by part", "[ranks]") {
  using Structure = std::map<std::string, std::tuple<at::Tensor, std::vector<at::Tensor>>>;
  const Structure local_value{{"a", {local_tensor(), {local_tensor(2), local_tensor(3)}}}};
  const auto all = std::get<1>(job_state().gather(local_value).at("a"));
  CHECK(all.at(1).equal(at::arange(size(), here()) * 3));
  const double sum = size() * (size() - 1) / 2.0;
  CHECK(std::get<0>(job_state().reduce(local_value).at("a")).item<double>() == sum);
  CHECK(std::get<0>(job_state().reduce(local_value, acc::ReduceOp::none).at("a")).item<double>() == sum);
  CHECK(std::get<0>(job_state().reduce(local_value, acc::ReduceOp::sum, 0.5).at("a")).item<double>() ==
        sum / 2);
  CHECK(std::get<0>(job_state().broadcast(local_value, size() - 1).at("a")).item<double>() == size() - 1);
}

TEST_CASE("accelerator: tensors are padded to the largest size of a dimension", "[ranks]") {
  const at::Tensor local_value = at::full({rank() + 1, 2}, rank(), here(at::kLong));
  const at::Tensor last = job_state().pad_across_processes(local_value, {.pad_index = -1});
  CHECK(last.sizes() == c10::IntArrayRef({size(), 2}));
  CHECK(last.slice(0, 0, rank() + 1).equal(local_value));
  CHECK(last.slice(0, rank() + 1).equal(at::full({size() - rank() - 1, 2}, -1, here(at::kLong))));
  const at::Tensor first =
      job_state().pad_across_processes(local_value.t(), {.dim = -1, .pad_index = 9, .pad_first = true});
  CHECK(first.slice(1, size() - rank() - 1).equal(local_value.t()));
  CHECK(job_state().pad_across_processes(local_value, {.dim = 5}).equal(local_value));
  CHECK(job_state().gather(last).size(0) == size() * size());
}

TEST_CASE("accelerator: objects of any number and length are gathered, and one is broadcast", "[ranks]") {
  const std::vector<std::string> local_value(static_cast<std::size_t>(rank()),
                                             std::string(static_cast<std::size_t>(rank()), 'x'));
  const std::vector<std::string> all = job_state().gather_object(local_value);
  CHECK(all.size() == static_cast<std::size_t>(size() * (size() - 1) / 2));
  CHECK(all.back() == std::string(static_cast<std::size_t>(size() - 1), 'x'));
  CHECK(job_state().gather_object(std::vector<std::string>()).empty());
  using Object = std::map<std::string, std::vector<double>>;
  const Object object{{"rank", {static_cast<double>(rank()), std::numeric_limits<double>::infinity()}}};
  CHECK(job_state().broadcast_object(object, 1).at("rank") ==
        std::vector<double>{1, std::numeric_limits<double>::infinity()});
}

TEST_CASE("accelerator: an object that one process cannot send is an error on all, and the job continues",
          "[ranks]") {
  const std::vector<Secret> local_value{{.is_kept = rank() == 1}};
  for (const auto& send :
       {std::function<void()>([&] { job_state().gather_object(local_value); }),
        std::function<void()>([&] { job_state().broadcast_object(local_value.front(), 1); })}) {
    if (rank() == 1) {
      CHECK_THROWS_WITH(send(), "is kept");
    } else {
      CHECK(error_of(send).find(": rank 1 could not send its object; its own error names the cause") !=
            std::string::npos);
    }
  }
  CHECK(job_state().gather_object(std::vector<int>{rank()}).size() == static_cast<std::size_t>(size()));
}

TEST_CASE("accelerator: the main process finishes before the others begin", "[ranks][one_machine]") {
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  std::int64_t begin = 0;
  std::int64_t end = 0;
  const auto function = [&] {
    begin = now();
    end = now();
  };
  const bool local = GENERATE(false, true);
  if (local) {
    job_state().local_main_process_first(function);
  } else {
    job_state().main_process_first(function);
  }
  const auto begins = job_state().gather(at::full({}, begin, at::kLong));
  const auto ends = job_state().gather(at::full({}, end, at::kLong));
  for (int other = 1; other < size(); ++other) {
    CHECK(ends[0].item<std::int64_t>() <= begins[other].item<std::int64_t>());
  }
}

TEST_CASE("accelerator: functions for one process run only there", "[ranks][one_machine]") {
  std::string ran;
  const auto note = [&](const char* what) { return [&ran, what] { ran += what; }; };
  job_state().on_main_process(note("main "));
  job_state().on_local_main_process(note("local "));
  job_state().on_last_process(note("last "));
  job_state().on_process(1, note("one "));
  job_state().on_local_process(1, note("local-one "));
  const std::string first = rank() == 0 ? "main local " : "";
  const std::string last = rank() == size() - 1 ? "last " : "";
  CHECK(ran == first + last + (rank() == 1 ? "one local-one " : ""));
}

TEST_CASE("accelerator: only the local main process prints, the logger writes where its options say",
          "[ranks][one_machine]") {
  CHECK(printed_to(stdout, [] { job_state().print("once"); }) == (rank() == 0 ? "once\n" : ""));
  const acc::Logger logger = acc::get_logger(job_state(), "test");
  CHECK(printed_to(stderr, [&] { logger.warning("main"); }) ==
        (rank() == 0 ? "WARNING:test:[RANK 0] main\n" : ""));
  const std::string local_value = "WARNING:test:[RANK " + std::to_string(rank()) + "] each\n";
  CHECK(printed_to(stderr, [&] { logger.warning("each", {.main_process_only = false}); }) == local_value);
  CHECK(printed_to(stderr, [&] { logger.warning("each", {.in_order = true}); }) == local_value);
}

TEST_CASE("accelerator: a trigger that one process sets is seen on all, once", "[ranks]") {
  acc::Accelerator accelerator;
  CHECK_FALSE(accelerator.check_trigger());
  if (rank() == size() - 1) accelerator.set_trigger();
  CHECK(accelerator.check_trigger());
  CHECK_FALSE(accelerator.check_trigger());
}

TEST_CASE("accelerator: gradients differ between processes while they accumulate, and are equal at the step",
          "[ranks]") {
  acc::Accelerator accelerator({.gradient_accumulation_steps = 2});
  auto model = accelerator.prepare(Net());
  const at::Tensor x = at::full({1, 2}, rank() + 1, here());
  const auto gradient = [&] { return model->fc->weight.grad().clone(); };
  {
    const auto batch = accelerator.accumulate(model);
    accelerator.backward(model(x).sum());
  }
  CHECK(gradient().equal(x / 2));
  {
    const auto batch = accelerator.accumulate(model);
    accelerator.backward(model(x).sum());
  }
  CHECK(gradient().allclose(accelerator.reduce(x, acc::ReduceOp::mean)));
}

TEST_CASE("accelerator: gradients of a model prepared for evaluation are not averaged", "[ranks]") {
  acc::Accelerator accelerator;
  const auto model = accelerator.prepare_model(Net().ptr(), {.evaluation_mode = true});
  CHECK(model.ddp() == nullptr);
}

TEST_CASE("accelerator: processes with other settings than the main process are told so, with each model",
          "[ranks]") {
  const auto prepare = [](bool same) {
    acc::Accelerator accelerator({.gradient_accumulation_steps = same || rank() == 0 ? 4 : 2});
    accelerator.prepare(Net());
  };
  CHECK(error_of([&] {
          prepare(false);
        }).starts_with("gradient_accumulation_steps: is 4 on rank 0, and 2 on rank 1 (give all"));
  CHECK_NOTHROW(prepare(true));
}

TEST_CASE("accelerator: in fp16 an overflow on one process skips the step on all", "[ranks]") {
  acc::Accelerator accelerator(
      {.mixed_precision = acc::MixedPrecision::fp16, .grad_scaler = {.init_scale = 64}});
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  acc::Scheduler plain(sgd, acc::exponential_lr(0.5));
  auto [model, optimizer, scheduler] = accelerator.prepare(net, std::move(sgd), std::move(plain));
  const auto step = [&](float input) {
    const at::Tensor before = net->fc->weight.detach().clone();
    optimizer.zero_grad();
    accelerator.backward(model(at::full({1, 2}, input, here())).sum());
    optimizer.step();
    scheduler.step();
    return !net->fc->weight.equal(before);
  };
  CHECK(step(1));
  CHECK(scheduler->last_epoch() == size());
  CHECK_FALSE(step(rank() == 0 ? std::numeric_limits<float>::infinity() : 1));
  CHECK(accelerator.optimizer_step_was_skipped());
  CHECK(scheduler->last_epoch() == size());
  CHECK(accelerator.scaler()->get_scale() == 32);
  CHECK(step(1));
  CHECK_FALSE(accelerator.optimizer_step_was_skipped());
}

TEST_CASE("accelerator: in a pass each object is gathered exactly once", "[ranks]") {
  acc::Accelerator accelerator;
  auto loader =
      accelerator.prepare(acc::DataLoader(acc::TensorDataset(at::arange(7, at::kLong)), {.batch_size = 2}));
  std::vector<int> all;
  for (auto& [numbers] : loader) {
    std::vector<int> objects;
    for (std::int64_t i = 0; i < numbers.size(0); ++i) objects.push_back(numbers[i].item<int>());
    const std::vector<int> part = accelerator.gather_for_metrics(objects);
    all.insert(all.end(), part.begin(), part.end());
  }
  CHECK(all == count_to(7));
}

TEST_CASE("accelerator: each process writes its trace", "[ranks]") {
  acc::Accelerator accelerator;
  const std::filesystem::path folder = shared_folder() / "traces";
  accelerator.profile({.output_trace_dir = folder}, [] { at::ones({2, 2}).mm(at::ones({2, 2})); });
  for (int other = 0; other < size(); ++other) {
    CHECK(std::filesystem::exists(folder / ("profile_" + std::to_string(other) + ".json")));
  }
  accelerator.wait_for_everyone();
}

TEST_CASE("accelerator: only the main process tracks, to the project's logging_dir", "[ranks]") {
  const std::filesystem::path folder = shared_folder() / "logs";
  acc::Accelerator accelerator({.log_with = {"all"}, .project = {.logging_dir = folder}});
  accelerator.init_trackers("net", {{"lr", 0.1}});
  accelerator.log({{"rank", rank()}}, 1);
  accelerator.get_tracker("jsonl").log({{"rank", rank()}}, 2);
  accelerator.end_training();
  job_state().wait_for_everyone();
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_directory()) files.push_back(entry.path().filename().string().substr(0, 6));
  }
  std::ranges::sort(files);
  CHECK(files == std::vector<std::string>{"events", "events", "hparam", "net.cs", "net.hp", "net.js"});
  const std::string lines = acc::read_file(folder / "net.jsonl");
  CHECK(std::ranges::count(lines, '\n') == 3);
  CHECK(lines.find("\"values\":{\"rank\":1}") == std::string::npos);
  job_state().wait_for_everyone();
}

TEST_CASE("accelerator: an unknown tracker is an error on every process", "[ranks]") {
  const auto unknown = [] { acc::Accelerator({.log_with = {"json"}, .project_dir = "/x"}); };
  CHECK(error_of(unknown) == "log_with: 'json' is not a tracker (did you mean 'jsonl'?)");
}

TEST_CASE("accelerator: end_training releases all objects and leaves the job", "[ranks]") {
  acc::Accelerator accelerator;
  Net net;
  {
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
    const auto batch = accelerator.accumulate(model);
  }
  CHECK(net.ptr().use_count() > 1);
  accelerator.end_training();
  CHECK(net.ptr().use_count() == 1);
  CHECK(accelerator.step() == 0);
  CHECK(accelerator.prepared().optimizers.empty());
  CHECK(accelerator.process_group() == nullptr);
  job_state().wait_for_everyone();
}
