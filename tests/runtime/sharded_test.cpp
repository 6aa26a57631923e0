// SPDX-License-Identifier: Apache-2.0
// Sharded models on several processes, each of which runs all cases in this order.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/checkpoint/model_weights.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/optim/learning_rate.hpp"
#include "acc/runtime/parallel/join.hpp"
#include "acc/runtime/parallel/local_sgd.hpp"
#include "acc/runtime/sharded/sharded_module.hpp"
#include "acc/runtime/sharded/unit.hpp"
#include "acc/runtime/tensors/meta_device.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace {

// One state for all cases, which have Accelerators of their own: a process joins its job once.
acc::PartialState& job() {
  static acc::PartialState state(std::chrono::minutes(1));
  return state;
}
int rank() {
  return job().process_index();
}
int size() {
  return job().num_processes();
}
// On this process's device: the cases run over NCCL, too (tests/gpu).
at::TensorOptions here(at::ScalarType type = at::kFloat) {
  return at::TensorOptions(job().device()).dtype(type);
}

acc::Error error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const acc::Error& error) {
    return error;
  }
  return acc::Error({.what = "none"});
}

// All parameters as one flat tensor on the CPU.
at::Tensor flat(const torch::nn::Module& module) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& parameter : module.parameters()) parts.push_back(parameter.detach().reshape({-1}));
  return at::cat(parts).cpu();
}

constexpr std::int64_t kWords = 24;
constexpr std::int64_t kWidth = 16;

struct BlockImpl : torch::nn::Module {
  BlockImpl()
      : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})))),
        up(register_module("up", torch::nn::Linear(kWidth, 2 * kWidth))),
        down(register_module("down", torch::nn::Linear(2 * kWidth, kWidth))) {}
  at::Tensor forward(const at::Tensor& x) {
    return x + down->forward(at::gelu(up->forward(norm->forward(x))));
  }

  torch::nn::LayerNorm norm;
  torch::nn::Linear up;
  torch::nn::Linear down;
};
TORCH_MODULE(Block);

struct Shape {
  int blocks = 4;
  // The output has the embedding's weight.
  bool tied = false;
  // A block, and the bias in each block, are not trained.
  bool frozen = false;
};

struct StackImpl : torch::nn::Module {
  explicit StackImpl(Shape of = {}) : shape(of) {
    words = register_module("words", torch::nn::Embedding(kWords, kWidth));
    for (int i = 0; i < shape.blocks; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), Block()));
    if (!shape.tied) out = register_module("out", torch::nn::Linear(kWidth, kWords));
    if (!shape.frozen) return;
    for (const auto& item : named_parameters())
      if (item.key().starts_with("block1.") || item.key().ends_with("up.bias"))
        item.value().set_requires_grad(false);
  }

  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = words->forward(x);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (order.empty()) y = blocks[i]->forward(y);
    }
    for (const int block : order) y = blocks[static_cast<std::size_t>(block)]->forward(y);
    return shape.tied ? at::linear(y, words->weight) : out->forward(y);
  }

  Shape shape;
  // Default: each once.
  std::vector<int> order = {};
  torch::nn::Embedding words{nullptr};
  std::vector<Block> blocks = {};
  torch::nn::Linear out{nullptr};
};
TORCH_MODULE(Stack);

acc::FsdpOptions stage(int number) {
  return {.reshard_after_forward = number == 3, .transformer_cls_to_wrap = {"Block"}};
}

acc::AcceleratorOptions sharded(int number, acc::AcceleratorOptions options = {}) {
  options.fsdp = stage(number);
  return options;
}

Stack seeded_stack(Shape shape = {}) {
  acc::set_seed(7);
  return Stack(shape);
}

// One that is not prepared, on the device of those that are.
Stack whole_stack() {
  Stack net = seeded_stack();
  net->to(job().device());
  return net;
}

using MakeOptimizer = std::function<std::shared_ptr<torch::optim::Optimizer>(const std::vector<at::Tensor>&)>;

std::shared_ptr<torch::optim::Optimizer> adamw(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> decayed;
  std::vector<at::Tensor> others;
  for (const at::Tensor& one : parameters)
    if (one.requires_grad()) (one.dim() > 1 ? decayed : others).push_back(one);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(decayed, std::make_unique<torch::optim::AdamWOptions>(
                                   torch::optim::AdamWOptions(1e-2).weight_decay(0.1)));
  groups.emplace_back(
      others, std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(1e-2).weight_decay(0)));
  return std::make_shared<torch::optim::AdamW>(groups);
}

at::Tensor batch_of(int step) {
  acc::set_seed(static_cast<std::uint64_t>(1000 + step * 16 + rank()));
  return at::randint(kWords, {3, 5}, at::TensorOptions(at::kLong)).to(job().device());
}

at::Tensor loss_of(const at::Tensor& out, const at::Tensor& x) {
  return at::cross_entropy_loss(out.reshape({-1, kWords}), ((x * 7 + 3) % kWords).reshape({-1}));
}

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

TEST_CASE("sharded: the losses are DDP's", "[ranks]") {
  REQUIRE(size() > 1);
  check_as_ddp({});
}

TEST_CASE("sharded: tied and frozen parameters train as with DDP", "[ranks]") {
  check_as_ddp({.shape = {.tied = true}});
  check_as_ddp({.shape = {.frozen = true}});
}

TEST_CASE("sharded: clipping and accumulation give DDP's numbers", "[ranks]") {
  check_as_ddp({.steps = 6, .batches = 3, .max_norm = 0.3});
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
  const std::string text = error_of([&] { weight.norm().item<float>(); }).what();
  INFO(text);
  CHECK(text.find("'block1' cannot be used here: each process has only a shard") != std::string::npos);
  CHECK(text.find("accelerator.gathered_parameters(model)") != std::string::npos);
  CHECK_NOTHROW(weight.detach().t());
  CHECK(error_of([&] { (void)net->forward(batch_of(0)); }).what() != std::string("none"));
  CHECK(error_of([&] { acc::clip_grad_norm(net->parameters(), 1); }).problems().front().hint ==
        "call accelerator.clip_grad_norm_");
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
  const int number = GENERATE(0, 2, 3);
  const bool triggered = GENERATE(false, true);
  static at::Tensor expected;
  acc::Accelerator accelerator(number == 0 ? acc::AcceleratorOptions() : sharded(number));
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
  if (number == 0) {
    expected = flat(*net);
  } else {
    CHECK(flat(*net).allclose(expected, 1e-5, 1e-6));
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
  const at::Tensor after = accelerator.get_state_dict(model)["block3.up.weight"];
  if (rank() == 0) CHECK(after.equal(before));
}

// The process group cannot be used after these two, which run alone.
TEST_CASE("sharded: processes that use the blocks in different orders get an error, not a hang",
          "[.orders]") {
  acc::Accelerator accelerator(sharded(3));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  net->order = rank() == 0 ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0, 2, 1, 3};
  const std::string text = error_of([&] { (void)model(batch_of(0)); }).what();
  INFO(text);
  CHECK(text.find("the processes use the model differently: this one gathers 'block") != std::string::npos);
  CHECK(text.find("in the same order") != std::string::npos);
}

TEST_CASE("sharded: a process that uses fewer blocks than the others gets an error, too", "[.fewer]") {
  acc::Accelerator accelerator(sharded(3));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  if (rank() == 0) net->order = {0, 1};
  const acc::Error error = error_of([&] {
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
  CHECK(error_of([&, &optimizer = optimizer] { optimizer.step(); })
            .problems()
            .front()
            .what.starts_with("a parameter group was added after it was prepared"));
  const auto replace = [&] { net->out->bias.set_data(at::zeros({kWords}, here())); };
  if (number == 3) {
    CHECK(error_of(replace).problems().front().what.find("cannot be used here") != std::string::npos);
    return;
  }
  replace();
  const acc::Error error = error_of([&, &model = model] { model(x); });
  CHECK(error.problems().front().where == "parameter 'out.bias'");
  CHECK(error.problems().front().what.starts_with("its memory was replaced after the model was prepared"));
}

TEST_CASE("sharded: a module that was replaced after prepare is named", "[ranks]") {
  acc::Accelerator accelerator(sharded(2));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  net->replace_module("out", torch::nn::Linear(kWidth, kWords));
  const acc::Error error = error_of([&, &model = model] { model(batch_of(0)); });
  CHECK(error.problems().front().where == "parameter 'out.weight'");
  CHECK(error.problems().front().what.starts_with("is another one than when the model was prepared"));
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
  CHECK(job().broadcast(mean).equal(mean));
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

TEST_CASE("sharded: a checkpoint of any stage continues to the bit, and another stage or DDP reads it",
          "[ranks]") {
  const int number = GENERATE(0, 2, 3);
  const bool in_shards = GENERATE(false, true);
  if (number == 0 && in_shards) return;
  const auto options_of = [&](int of) {
    acc::AcceleratorOptions options = of == 0 ? acc::AcceleratorOptions() : sharded(of);
    if (in_shards && options.fsdp) options.fsdp->state_dict_type = acc::StateDictType::sharded;
    return options;
  };
  const auto folder = job().broadcast_object(acc::test::temporary_folder().string());
  const auto run = [&](int of, bool saves, bool loads) {
    acc::Accelerator accelerator(options_of(of));
    acc::set_seed(static_cast<std::uint64_t>(loads ? 50 : 7));
    Stack net;
    auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
    if (loads) accelerator.load_state(folder);
    for (int step = loads ? 3 : 0; step < 6; ++step) {
      if (saves && step == 3) accelerator.save_state(folder);
      const at::Tensor x = batch_of(step);
      accelerator.backward(loss_of(model(x), x));
      optimizer.step();
      optimizer.zero_grad();
    }
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    return flat(*net).clone();
  };
  const at::Tensor expected = run(number, /*saves=*/true, /*loads=*/false);
  CHECK(run(number, false, true).equal(expected));
  for (const int other : {0, 2, 3}) {
    CAPTURE(number, other, in_shards);
    CHECK(run(other, false, true).allclose(expected, 1e-4, 1e-5));
  }
  if (rank() == 0 && in_shards) {
    CHECK(std::filesystem::exists(std::filesystem::path(folder) / "pytorch_model_fsdp_0/.metadata"));
    CHECK_FALSE(std::filesystem::exists(std::filesystem::path(folder) / "model.safetensors"));
  } else if (rank() == 0) {
    CHECK(std::filesystem::exists(std::filesystem::path(folder) / "model.safetensors"));
    const acc::PtValue state = acc::read_pt_file(std::filesystem::path(folder) / "optimizer.bin");
    // As Python's AdamW writes it: whole tensors, by the numbers of the parameters.
    const acc::PtValue* first = state.find("state")->find(std::int64_t{0});
    CHECK(first->find("exp_avg")->get_if<at::Tensor>()->sizes() == c10::IntArrayRef({kWords, kWidth}));
    CHECK(first->find("step")->number() == 3);
  }
  job().wait_for_everyone();
}

TEST_CASE("sharded: a full checkpoint continues a parameter without dimensions, too", "[ranks]") {
  struct Scaled : torch::nn::Module {
    Scaled()
        : fc(register_module("fc", torch::nn::Linear(3, 1))),
          scale(register_parameter("scale", at::full({}, 2.0))) {}
    at::Tensor forward(const at::Tensor& x) { return fc->forward(x) * scale; }
    torch::nn::Linear fc;
    at::Tensor scale;
  };
  const bool frees = GENERATE(false, true);
  const auto folder = job().broadcast_object(acc::test::temporary_folder().string());
  const auto run = [&](bool loads) {
    acc::Accelerator accelerator({.fsdp = acc::FsdpOptions{.reshard_after_forward = frees}});
    acc::set_seed(static_cast<std::uint64_t>(loads ? 50 : 7));
    const auto net = std::make_shared<Scaled>();
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::AdamW(net->parameters(), 0.01));
    if (loads) accelerator.load_state(folder);
    for (int step = loads ? 2 : 0; step < 4; ++step) {
      if (!loads && step == 2) accelerator.save_state(folder);
      accelerator.backward(model(at::full({2, 3}, rank() + step + 1, here())).square().mean());
      optimizer.step();
      optimizer.zero_grad();
    }
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    return flat(*net).clone();
  };
  const at::Tensor expected = run(/*loads=*/false);
  CHECK(run(/*loads=*/true).equal(expected));
  job().wait_for_everyone();
}

TEST_CASE("sharded: saved in the background, and while gradients accumulate", "[ranks]") {
  acc::Accelerator accelerator(sharded(3, {.gradient_accumulation_steps = 2}));
  Stack net = seeded_stack();
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const auto folder = job().broadcast_object(acc::test::temporary_folder().string());
  const at::Tensor before = accelerator.get_state_dict(model)["words.weight"];
  accelerator.save_state(folder, {.background = true});
  for (int step = 0; step < 2; ++step) {
    const auto batch = accelerator.accumulate(model);
    const at::Tensor x = batch_of(step);
    accelerator.backward(loss_of(model(x), x));
    if (step == 0)
      CHECK(error_of([&] { accelerator.save_state(folder); })
                .problems()
                .front()
                .what.starts_with("gradients of"));
    optimizer.step();
    optimizer.zero_grad();
  }
  accelerator.wait_for_save();
  if (rank() == 0) CHECK(acc::read_weights(folder).at("words.weight").equal(before.cpu()));
  accelerator.load_model(model, folder);
  const at::Tensor after = accelerator.get_state_dict(model)["words.weight"];
  if (rank() == 0) CHECK(after.equal(before));
  job().wait_for_everyone();
}

TEST_CASE("sharded: a model on the meta device is filled from files or shards, each process its own",
          "[ranks]") {
  const bool in_shards = GENERATE(false, true);
  const auto folder = job().broadcast_object(acc::test::temporary_folder().string());
  acc::AcceleratorOptions options = sharded(3);
  options.fsdp->state_dict_type = acc::StateDictType::sharded;
  acc::Accelerator accelerator(options);
  Stack source = seeded_stack();
  if (in_shards) {
    acc::Accelerator saver(options);
    Stack saved = seeded_stack();
    saver.prepare(saved);
    saver.save_state(folder);
  } else if (rank() == 0) {
    acc::save_weights(*source, folder, 1 << 30);
  }
  job().wait_for_everyone();
  Stack net = seeded_stack();
  for (const at::Tensor& one : net->parameters()) {
    const at::Tensor without_memory = at::empty(one.sizes(), at::TensorOptions(at::kMeta));
    one.unsafeGetTensorImpl()->shallow_copy_from(without_memory.getIntrusivePtr());
  }
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  CHECK(error_of([&] { (void)model(batch_of(0)); }).problems().front().what ==
        "was made on the meta device and has no values");
  CHECK(error_of([&] { accelerator.save_state(folder + "/none"); })
            .problems()
            .front()
            .what.find("has no values") != std::string::npos);
  accelerator.load_model(model, folder);
  const at::NoGradGuard no_grad;
  source->to(job().device());
  CHECK(model(batch_of(0)).equal(source->forward(batch_of(0))));
}

TEST_CASE("sharded: processes but the first may make the model without memory", "[ranks]") {
  const int number = GENERATE(2, 3);
  acc::Accelerator accelerator(sharded(number));
  Stack source = whole_stack();
  Stack net = [] {
    std::optional<acc::MetaDevice> without_memory;
    if (rank() != 0) without_memory.emplace();
    return seeded_stack();
  }();
  CHECK(net->words->weight.is_meta() == (rank() != 0));
  auto [model, optimizer] = accelerator.prepare(net, adamw(net->parameters()));
  const at::Tensor x = batch_of(0);
  const at::Tensor loss = loss_of(model(x), x);
  CHECK(loss.equal(loss_of(source->forward(x), x)));
  accelerator.backward(loss);
  optimizer.step();
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
  CHECK(error_of([&] { accelerator.prepare(net); }).problems().front().hint ==
        "make buffers on the CPU: they are not sharded");
  net->linear->forward(at::ones({1, 2})).sum().backward();
  CHECK(net->linear->weight.grad().eq(1).all().item<bool>());
}

TEST_CASE("sharded: what is not there is refused in a line that says what to do", "[ranks]") {
  acc::Accelerator accelerator(sharded(3));
  Stack net = seeded_stack();
  const auto hint_of = [](const std::function<void()>& function) {
    const acc::Error error = error_of(function);
    INFO(error.what());
    CHECK(std::count(error.what(), error.what() + std::string(error.what()).size(), '\n') == 0);
    return error.problems().front().hint;
  };
  CHECK(hint_of([] { acc::Accelerator(sharded(3, {.ddp = {.comm_hook = acc::CommHook::bf16}})); }) ==
        "leave it out, or train without fsdp (--use_fsdp)");
  auto model = accelerator.prepare(net);
  CHECK(hint_of([&] { accelerator.prepare(torch::optim::LBFGS(net->parameters())); }) ==
        "SGD, Adam, AdamW, RMSprop and Adagrad can");
  CHECK(hint_of([&] { accelerator.prepare(net); }) == "prepare it once, and pass the prepared model");
  CHECK(hint_of([&] { acc::local_sgd(model, 2, [](acc::LocalSGD&) {}); }) ==
        "train without fsdp (--use_fsdp) to use it");
  CHECK(hint_of([&] { acc::join_uneven_inputs({model}, [] {}); }) ==
        "train without fsdp (--use_fsdp) to use it");
  CHECK(hint_of([&] {
          const at::Tensor x = batch_of(0);
          accelerator.backward(loss_of(model(x), x));
        }) == "prepare the model and its optimizer: prepare(model, std::move(optimizer))");
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
  const acc::Error error = error_of([&] {
    const at::Tensor x = at::arange(6, here(at::kLong)).reshape({2, 3});
    accelerator.backward(loss_of(model(x), x));
  });
  INFO(error.what());
  CHECK(error.problems().front().what.starts_with("rank 1 ended or was lost: "));
}
