// SPDX-License-Identifier: Apache-2.0
// Parameters of sharded models on several processes: their memory, how they are gathered, and what is
// refused.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

#include "acc/runtime/parallel/join.hpp"
#include "acc/runtime/parallel/local_sgd.hpp"
#include "acc/runtime/sharded/sharded_module.hpp"
#include "acc/runtime/sharded/unit.hpp"
#include "runtime/sharded_stack.hpp"
#include "support/catch.hpp"

namespace sharded_parameters_test {

using namespace sharded_stack;

namespace {

// LibTorch's CPU allocator, with the sum of what is allocated.
class CountingAllocator final : public c10::Allocator {
 public:
  static CountingAllocator& get() {
    static CountingAllocator allocator;
    static const bool is_set = (c10::SetCPUAllocator(&allocator, /*priority=*/100), true);
    (void)is_set;
    return allocator;
  }
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    char* block = static_cast<char*>(c10::alloc_cpu(bytes + kHeader));
    std::memcpy(block, &bytes, sizeof bytes);
    change(static_cast<std::int64_t>(bytes));
    return {block + kHeader, block + kHeader, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  static std::int64_t live() {
    const std::scoped_lock lock(mutex_);
    return live_;
  }
  // Waits for it: what was transferred last may be held by another thread for a moment.
  static bool falls_to(std::int64_t bytes) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return live_ <= bytes; });
  }

 private:
  static constexpr std::size_t kHeader = 64;

  static void release(void* data) {
    if (data == nullptr) return;
    char* block = static_cast<char*>(data) - kHeader;
    std::size_t bytes = 0;
    std::memcpy(&bytes, block, sizeof bytes);
    change(-static_cast<std::int64_t>(bytes));
    c10::free_cpu(block);
  }
  static void change(std::int64_t bytes) {
    const std::scoped_lock lock(mutex_);
    live_ += bytes;
    changed_.notify_all();
  }

  inline static std::mutex mutex_;
  inline static std::condition_variable changed_;
  inline static std::int64_t live_ = 0;
};

std::shared_ptr<acc::detail::ShardedModule> sharded_module(const acc::Model<StackImpl>& model) {
  return std::dynamic_pointer_cast<acc::detail::ShardedModule>(model.distributed());
}

}  // namespace

TEST_CASE("sharded: gathered parameters need memory for the root and two blocks, and none outside",
          "[ranks]") {
  acc::Accelerator accelerator(sharded(3));
  Stack net = seeded_stack({.blocks = 6});
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const auto module = sharded_module(model);
  for (int step = 0; step < 3; ++step) {
    const at::Tensor x = batch_of(step);
    accelerator.backward(loss_of(model(x), x));
    optimizer.step();
    optimizer.zero_grad();
    for (const auto& unit : module->units()) CHECK_FALSE(unit->is_allocated());
  }
  const auto& units = module->units();
  CHECK(units.size() == 7);
  CHECK(units[0]->is_root());
  CHECK(module->take_peak_bytes() == units[0]->bytes() + 2 * units[1]->bytes());
}

TEST_CASE("sharded: between steps stage 2 takes at most 0.65 of DDP's memory, stage 3 at most 0.4",
          "[ranks][cpu]") {
  CountingAllocator::get();
  std::int64_t ddp = 0;
  for (const auto& [number, part] : {std::pair(0, 1.0), std::pair(2, 0.65), std::pair(3, 0.4)}) {
    CAPTURE(number);
    acc::Accelerator accelerator(number == 0 ? acc::AcceleratorOptions() : sharded(number));
    const std::int64_t before = CountingAllocator::live();
    Stack net = seeded_stack({.blocks = 12});
    auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
    for (int step = 0; step < 3; ++step) {
      const at::Tensor x = batch_of(step);
      accelerator.backward(loss_of(model(x), x));
      optimizer.step();
      optimizer.zero_grad();
    }
    if (number == 0) ddp = CountingAllocator::live() - before;
    const auto allowed = static_cast<std::int64_t>(part * static_cast<double>(ddp));
    const bool falls = CountingAllocator::falls_to(before + allowed);
    CAPTURE(ddp, allowed, CountingAllocator::live() - before);
    CHECK(falls);
  }
}

TEST_CASE("sharded: a parameter that is read outside of the model is an error that says what to do",
          "[ranks]") {
  acc::Accelerator accelerator(sharded(3));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const at::Tensor weight = net->blocks[1]->up->weight;
  const std::string text = caught_error([&] { weight.norm().item<float>(); }).what();
  INFO(text);
  CHECK(text.find("'block1' cannot be used here: each process has only a shard") != std::string::npos);
  CHECK(text.find("accelerator.gathered_parameters(model)") != std::string::npos);
  CHECK_NOTHROW(weight.detach().t());
  // What makes a view or a copy is refused when it would copy.
  CHECK_NOTHROW(weight.to(at::kFloat).contiguous());
  const at::Tensor detached = weight.detach();
  const std::vector<std::function<void()>> copies{
      [&] { (void)weight.to(at::kDouble); },       [&] { (void)weight.t().contiguous(); },
      [&] { (void)weight.t().reshape({-1}); },     [&] { (void)weight.clone(); },
      [&] { (void)detached[0][0].item<float>(); }, [&] { (void)at::zeros({1}).sub_(detached.sum()); }};
  for (const auto& copy : copies)
    CHECK(caught_error(copy).problems().front().what.starts_with("'block1' cannot be used here"));
  CHECK(caught_error([&] { (void)net->forward(batch_of(0)); }).what() != std::string("none"));
  CHECK(caught_error([&] { acc::clip_grad_norm(net->parameters(), 1); }).problems().front().hint ==
        "call accelerator.clip_grad_norm_");
}

TEST_CASE("sharded: in stage 3 changes that would be lost are refused, in forward, too", "[ranks]") {
  acc::Accelerator accelerator(sharded(3));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const auto change = [](const at::Tensor& parameter) {
    const at::NoGradGuard no_grad;
    parameter.mul_(0.5);
  };
  const auto refusal = [&](const at::Tensor& parameter) {
    return caught_error([&] { change(parameter); }).problems().front().what;
  };
  const std::string what =
      " cannot be changed here: each process keeps only a shard, and what was gathered is freed";
  CHECK(refusal(net->blocks[1]->up->weight) == "'block1'" + what);
  // Between forward and backward the root's parameters can be read.
  const at::Tensor x = batch_of(0);
  at::Tensor loss = loss_of(model(x), x);
  loss = loss + net->out->weight.square().sum();
  CHECK(refusal(net->out->weight) == "the root's parameters" + what);
  CHECK_NOTHROW(at::zeros_like(net->out->weight).copy_(net->out->weight));
  accelerator.backward(loss);
  optimizer.step();
  net->changes_block = true;
  CHECK(caught_error([&, &model = model] { model(x); }).problems().front().what == "'block2'" + what);
  const auto gathered = accelerator.gathered_parameters(model);
  CHECK_NOTHROW(model(x));
  change(net->blocks[1]->up->weight);
  const at::Tensor changed = net->blocks[1]->up->weight.detach().clone();
  const acc::NamedTensors state = accelerator.get_state_dict(model);
  if (rank() == 0) CHECK(state.at("block1.up.weight").equal(changed));
}

TEST_CASE("sharded: gathered parameters are rank 0's at first, and changes to them are kept", "[ranks]") {
  const int number = GENERATE(2, 3);
  const auto precision = GENERATE(acc::MixedPrecision::no, acc::MixedPrecision::bf16);
  acc::Accelerator accelerator(sharded(number, {.mixed_precision = precision}));
  Stack expected = seeded_stack();
  acc::set_seed(static_cast<std::uint64_t>(7 + rank()));
  Stack net;
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const bool exact = precision == acc::MixedPrecision::no;
  {
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    CHECK(flat(*net).to(at::kFloat).allclose(flat(*expected), exact ? 0 : 1e-2, exact ? 0 : 1e-2));
    const at::NoGradGuard no_grad;
    net->blocks[2]->up->weight.fill_(0.5);
  }
  CHECK(accelerator.get_state_dict(model).contains("words.weight") == (rank() == 0));
  {
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    CHECK(net->blocks[2]->up->weight.eq(0.5).all().item<bool>());
  }
  const acc::NamedTensors state = accelerator.get_state_dict(model);
  if (rank() == 0) {
    // The digits that bf16 lacks are still there.
    CHECK(state.at("words.weight").cpu().equal(expected->words->weight));
    CHECK(state.at("block2.up.weight").eq(0.5).all().item<bool>());
  }
}

TEST_CASE("sharded: steps and changes are kept while parameters are gathered", "[ranks]") {
  const int number = GENERATE(2, 3);
  const auto train = [number](bool gathered_all_the_time) {
    acc::Accelerator accelerator(sharded(number));
    Stack net = seeded_stack();
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
    std::vector<double> losses;
    std::unique_ptr<acc::GatheredParameters> gathered;
    const auto gather = [&, &model = model] {
      gathered.reset(new acc::GatheredParameters(accelerator.gathered_parameters(model)));
    };
    if (gathered_all_the_time) gather();
    for (int step = 0; step < 4; ++step) {
      if (!gathered_all_the_time) gather();
      {
        const at::NoGradGuard no_grad;
        if (step == 2) net->out->bias.add_(0.5);
      }
      if (!gathered_all_the_time) gathered.reset();
      const at::Tensor x = batch_of(step);
      const at::Tensor loss = loss_of(model(x), x);
      losses.push_back(loss.item<double>());
      optimizer.zero_grad();
      accelerator.backward(loss);
      optimizer.step();
    }
    gathered.reset();
    gather();
    losses.push_back(flat(*net).square().sum().item<double>());
    return losses;
  };
  CHECK(train(true) == train(false));
}

TEST_CASE("sharded: stage 2 keeps what the program changes in parameters at any time", "[ranks]") {
  acc::Accelerator accelerator(
      sharded(2, {.mixed_precision = GENERATE(acc::MixedPrecision::no, acc::MixedPrecision::bf16)}));
  Stack expected = seeded_stack();
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.0));
  // Backward does not need a bias, so it may change before that.
  const auto change = [&](double value) {
    const at::NoGradGuard no_grad;
    net->out->bias.fill_(value);
  };
  const auto check = [&, &model = model, &optimizer = optimizer](double value) {
    optimizer.step();
    CHECK(net->out->bias.eq(value).all().item<bool>());
    const acc::NamedTensors state = accelerator.get_state_dict(model);
    if (rank() != 0) return;
    CHECK(state.at("out.bias").eq(value).all().item<bool>());
    // The digits that bf16 lacks are still there.
    CHECK(state.at("words.weight").cpu().equal(expected->words->weight));
  };
  change(0.75);
  CHECK(accelerator.get_state_dict(model).contains("out.bias") == (rank() == 0));
  CHECK(net->out->bias.eq(0.75).all().item<bool>());
  check(0.75);
  const at::Tensor x = batch_of(0);
  change(0.5);
  at::Tensor loss = loss_of(model(x), x);
  accelerator.backward(loss);
  check(0.5);
  loss = loss_of(model(x), x);
  change(0.25);
  accelerator.backward(loss);
  check(0.25);
  accelerator.backward(loss_of(model(x), x));
  change(0.125);
  check(0.125);
}

TEST_CASE("sharded: check_parameters compares what each process has whole", "[ranks]") {
  const int number = GENERATE(2, 3);
  acc::AcceleratorOptions options = sharded(number);
  options.fsdp->ignored_modules = "words";
  acc::Accelerator accelerator(options);
  Stack net = seeded_stack();
  net->words->weight.set_requires_grad(false);
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  CHECK_NOTHROW(accelerator.check_parameters());
  const at::NoGradGuard no_grad;
  const at::Tensor changed = number == 2 ? net->out->bias : net->words->weight;
  changed.add_(rank());
  CHECK(caught_error([&] { accelerator.check_parameters(); }).problems().front().where ==
        (number == 2 ? "parameter 'out.bias'" : "parameter 'words.weight'"));
}

TEST_CASE("sharded: a step of LibTorch's own optimizer that leaves parameters outdated is refused",
          "[ranks]") {
  const int number = GENERATE(2, 3);
  const auto precision = GENERATE(acc::MixedPrecision::no, acc::MixedPrecision::bf16);
  acc::Accelerator accelerator(sharded(number, {.mixed_precision = precision}));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const at::Tensor x = batch_of(0);
  accelerator.backward(loss_of(model(x), x));
  std::unique_ptr<acc::GatheredParameters> gathered;
  if (number == 3) gathered.reset(new acc::GatheredParameters(accelerator.gathered_parameters(model)));
  optimizer.native().step();
  const acc::Error error = caught_error([&, &model = model] { model(x); });
  CHECK(error.problems().front().what ==
        "the optimizer has stepped, and the parameters were not gathered after it");
  CHECK(error.problems().front().hint.starts_with("call step() of the optimizer that prepare returned"));
  // The step is not lost, and can be used once they are gathered.
  gathered.reset();
  optimizer.step();
  CHECK_NOTHROW(model(x));
}

TEST_CASE("sharded: a parameter whose sharded model has ended says so when it is read", "[ranks]") {
  Stack net = seeded_stack();
  {
    acc::Accelerator accelerator(sharded(3));
    auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
    const at::Tensor x = batch_of(0);
    accelerator.backward(loss_of(model(x), x));
    optimizer.step();
  }
  const auto message_of = [](const std::function<void()>& function) -> std::string {
    try {
      function();
      return "none";
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
  };
  const std::vector<std::function<void()>> uses{[&] { (void)net->words->weight.sum(); },
                                                [&] { (void)net->words->weight.detach().clone(); },
                                                [&] { (void)net->forward(batch_of(0)); }};
  for (const auto& use : uses)
    CHECK(message_of(use).starts_with("this parameter was sharded, and its sharded model has ended"));
}

TEST_CASE("sharded: parameters that are replaced, or given to the optimizer later, are refused", "[ranks]") {
  const int number = GENERATE(2, 3);
  acc::Accelerator accelerator(sharded(number));
  Stack net = seeded_stack();
  const std::vector<at::Tensor> all = net->parameters();
  auto [model, optimizer] =
      accelerator.prepare(net, torch::optim::SGD(std::vector<at::Tensor>(all.begin() + 1, all.end()), 0.1));
  const at::Tensor x = batch_of(0);
  accelerator.backward(loss_of(model(x), x));
  optimizer.step();
  optimizer.native().add_param_group(torch::optim::OptimizerParamGroup({all.front()}));
  accelerator.backward(loss_of(model(x), x));
  CHECK(caught_error([&, &optimizer = optimizer] { optimizer.step(); })
            .problems()
            .front()
            .what.starts_with("a parameter group was added after it was prepared"));
  const auto replace = [&] { net->out->bias.set_data(at::zeros({kWords}, here())); };
  if (number == 3) {
    CHECK(caught_error(replace).problems().front().what.find("cannot be used here") != std::string::npos);
    return;
  }
  replace();
  const acc::Error error = caught_error([&, &model = model] { model(x); });
  CHECK(error.problems().front().where == "parameter 'out.bias'");
  CHECK(error.problems().front().what.starts_with("its memory was replaced after the model was prepared"));
}

TEST_CASE("sharded: a module that was replaced after prepare is named", "[ranks]") {
  acc::Accelerator accelerator(sharded(2));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  net->replace_module("out", torch::nn::Linear(kWidth, kWords));
  const acc::Error error = caught_error([&, &model = model] { model(batch_of(0)); });
  CHECK(error.problems().front().where == "parameter 'out.weight'");
  CHECK(error.problems().front().what.starts_with("is another one than when the model was prepared"));
}

TEST_CASE("sharded: a model that is refused for its buffers is left as it was", "[ranks]") {
  struct CountedImpl : torch::nn::Module {
    CountedImpl() : linear(register_module("linear", torch::nn::Linear(2, 1))) {
      register_buffer("count", at::empty({1}, at::TensorOptions(at::kMeta)));
    }
    torch::nn::Linear linear;
  };
  acc::Accelerator accelerator({.fsdp = acc::FsdpOptions{}});
  const auto net = std::make_shared<CountedImpl>();
  CHECK(caught_error([&] { accelerator.prepare(net); }).problems().front().hint ==
        "make buffers on the CPU: they are not sharded");
  net->linear->forward(at::ones({1, 2})).sum().backward();
  CHECK(net->linear->weight.grad().eq(1).all().item<bool>());
}

TEST_CASE("sharded: a buffer that shares memory with a parameter is refused by name", "[ranks]") {
  acc::Accelerator accelerator(sharded(GENERATE(2, 3)));
  Stack net = seeded_stack();
  net->register_buffer("rows", net->blocks[0]->up->weight.detach().narrow(0, 0, 2));
  const acc::Error error = caught_error([&] { accelerator.prepare(net); });
  CHECK(error.problems().front().where == "buffer 'rows'");
  CHECK(error.problems().front().what ==
        "shares memory with parameter 'block0.up.weight', which sharding moves");
}

TEST_CASE("sharded: parameters that share memory are refused by name, those of one block of memory are not",
          "[ranks]") {
  acc::Accelerator accelerator(sharded(GENERATE(2, 3)));
  Stack net = seeded_stack();
  net->blocks[1]->up->weight.set_data(net->blocks[0]->up->weight);
  const acc::Error error = caught_error([&] { accelerator.prepare(net); });
  CHECK(error.problems().front().where == "parameter 'block1.up.weight'");
  CHECK(error.problems().front().what ==
        "shares memory with parameter 'block0.up.weight', and sharding would train them apart");
  Stack other = seeded_stack();
  const at::Tensor block = at::zeros({2, kWidth});
  other->blocks[0]->down->bias.set_data(block[0]);
  other->blocks[1]->down->bias.set_data(block[1]);
  CHECK_NOTHROW(accelerator.prepare(other));
}

TEST_CASE("sharded: a buffer or parameter whose elements share memory is refused by name", "[ranks]") {
  acc::Accelerator accelerator(sharded(GENERATE(2, 3)));
  const at::Tensor expanded = at::ones({1}, here()).expand({4});
  Stack net = seeded_stack();
  net->register_buffer("scale", expanded);
  CHECK(caught_error([&] { accelerator.prepare(net); }).problems().front().where == "buffer 'scale'");
  Stack other = seeded_stack();
  other->register_parameter("bias", expanded, false);
  CHECK(caught_error([&] { accelerator.prepare(other); }).problems().front().where == "parameter 'bias'");
  if (here().device().is_cpu()) return;
  // The device has a copy of each element.
  Stack moved = seeded_stack();
  const at::Tensor buffer = moved->register_buffer("scale", at::ones({1}).expand({4}));
  accelerator.prepare(moved);
  CHECK(buffer.equal(at::ones({4}, here())));
}

TEST_CASE("sharded: what is not there is refused in a line that says what to do", "[ranks]") {
  acc::Accelerator accelerator(sharded(3));
  Stack net = seeded_stack();
  const auto hint_of = [](const std::function<void()>& function) {
    const acc::Error error = caught_error(function);
    INFO(error.what());
    CHECK(std::count(error.what(), error.what() + std::string(error.what()).size(), '\n') == 0);
    return error.problems().front().hint;
  };
  CHECK(hint_of([] { acc::Accelerator(sharded(3, {.ddp = {.comm_hook = acc::CommHook::bf16}})); }) ==
        "leave it out, or train without fsdp (--use_fsdp)");
  auto model = accelerator.prepare(net);
  CHECK(hint_of([&] { accelerator.prepare(torch::optim::LBFGS(net->parameters())); }) ==
        "SGD, Adam, AdamW, RMSprop and Adagrad can");
  CHECK(
      hint_of([&] { accelerator.prepare(net); }) ==
      "prepare it once, and pass the prepared model; of two models that share parameters, prepare one module "
      "that contains both");
  CHECK(hint_of([&] { acc::local_sgd(model, 2, [](acc::LocalSGD&) {}); }) ==
        "train without fsdp (--use_fsdp) to use it");
  CHECK(hint_of([&] { acc::join_uneven_inputs({model}, [] {}); }) ==
        "train without fsdp (--use_fsdp) to use it");
  CHECK(hint_of([&] {
          const at::Tensor x = batch_of(0);
          accelerator.backward(loss_of(model(x), x));
        }) == "prepare the model and its optimizer: prepare(model, std::move(optimizer))");
  auto optimizer_of_model = accelerator.prepare(torch::optim::SGD(net->parameters(), 0.1));
  const std::vector<at::Tensor> parts = optimizer_of_model.native().param_groups().front().params();
  const std::string own =
      "call accelerator.clip_grad_norm_ with the model's own: model->parameters(), or those of its layers";
  CHECK(hint_of([&] { accelerator.clip_grad_norm_(parts, 1); }) == own);
  CHECK(hint_of([&] { acc::clip_grad_norm(parts, 1); }) == own);
  std::vector<torch::optim::OptimizerParamGroup> twice;
  twice.emplace_back(net->parameters());
  twice.emplace_back(net->out->parameters());
  CHECK(hint_of([&] { accelerator.prepare(torch::optim::SGD(twice, torch::optim::SGDOptions(0.1))); }) ==
        "leave it in one of them; layers that share a weight each list it");
  Stack other = whole_stack();
  torch::optim::SGD sgd(other->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  loss_of(other->forward(batch_of(0)), batch_of(0)).backward();
  sgd.step();
  CHECK(hint_of([&] { accelerator.prepare(other, std::move(sgd)); }) ==
        "prepare it before its first step; load_state restores an earlier state");
  Stack thawed = seeded_stack();
  auto [prepared, optimizer] = accelerator.prepare(thawed, adamw(thawed->parameters()));
  thawed->words->weight.set_requires_grad(false);
  CHECK(hint_of([&] { (void)prepared(batch_of(0)); }) == "freeze and unfreeze parameters before prepare");
}

}  // namespace sharded_parameters_test
