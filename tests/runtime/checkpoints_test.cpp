// SPDX-License-Identifier: Apache-2.0
// Runs on several processes, each of which runs all cases in this order.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <torch/nn/functional/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "acc/runtime/trainer/trainer.hpp"
#include "runtime/process.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace {

namespace fs = std::filesystem;
using acc::test::flat;

struct NetImpl : torch::nn::Module {
  NetImpl()
      : first(register_module("first", torch::nn::Linear(2, 16))),
        second(register_module("second", torch::nn::Linear(16, 1))) {}
  at::Tensor forward(const at::Tensor& x) {
    return second->forward(torch::nn::functional::dropout(first->forward(x)));
  }
  torch::nn::Linear first;
  torch::nn::Linear second;
};

// An object to register, whose state is a number.
struct Counter {
  std::int64_t value = 0;
  acc::PtValue state() const { return value; }
  void load_state(const acc::PtValue& state) { value = static_cast<std::int64_t>(state.number().value()); }
};

// A new folder that the main process creates, the same on all processes.
fs::path common_folder(const acc::Accelerator& accelerator) {
  return accelerator.broadcast_object(acc::test::temporary_folder().string());
}

std::vector<std::int64_t> numbers_in(const fs::path& project) {
  std::vector<std::int64_t> numbers;
  for (const auto& checkpoint : acc::list_checkpoints(project / "checkpoints"))
    numbers.push_back(checkpoint.number);
  return numbers;
}

// A training with all kinds of state. Saves after `save_after` batches, or loads before the first if that is
// 0.
at::Tensor train(const fs::path& folder, int save_after, const acc::DdpOptions& ddp) {
  acc::Accelerator accelerator({.ddp = ddp});
  acc::set_seed(save_after > 0 ? 1 : 2);
  auto net = std::make_shared<NetImpl>();
  // From here on each process draws different random numbers.
  acc::set_seed(static_cast<std::uint64_t>(10 * save_after + accelerator.process_index()));
  auto sgd =
      std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto plain = std::make_shared<acc::Scheduler>(*sgd, acc::exponential_lr(0.9));
  auto [model, optimizer, scheduler] = accelerator.prepare(net, sgd, plain);
  Counter batches;
  accelerator.register_for_checkpointing(batches);
  if (save_after == 0) accelerator.load_state(folder);
  while (batches.value < 9) {
    const at::Tensor x = at::arange(6, at::TensorOptions(accelerator.device()).dtype(at::kFloat))
                             .add(6 * batches.value + accelerator.process_index())
                             .sin()
                             .reshape({3, 2});
    optimizer.zero_grad();
    accelerator.backward(model(x).square().mean());
    optimizer.step();
    scheduler.step();
    if (++batches.value == save_after) accelerator.save_state(folder);
  }
  return flat(*net);
}

// Nine batches, three for each step. Saves after `save_after` batches, or loads before the first if that is
// 0.
at::Tensor accumulate(const fs::path& folder, int save_after) {
  acc::Accelerator accelerator({.gradient_accumulation_steps = 3});
  acc::set_seed(save_after > 0 ? 1 : 2);
  auto net = std::make_shared<NetImpl>();
  net->eval();  // no dropout
  auto [model, optimizer] = accelerator.prepare(
      net,
      std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)));
  Counter batches;
  accelerator.register_for_checkpointing(batches);
  if (save_after == 0) accelerator.load_state(folder);
  while (batches.value < 9) {
    const at::Tensor x = at::arange(6, at::TensorOptions(accelerator.device()).dtype(at::kFloat))
                             .add(6 * batches.value + accelerator.process_index())
                             .sin()
                             .reshape({3, 2});
    const auto batch = accelerator.accumulate(model);
    accelerator.backward(model(x).square().mean());
    optimizer.step();
    optimizer.zero_grad();
    if (++batches.value == save_after) accelerator.save_state(folder);
  }
  return flat(*net);
}

struct Course {
  std::vector<at::Tensor> batches = {};
  at::Tensor parameters = {};
};

struct Interruption {
  bool dispatch = false;
  std::size_t num_workers = 0;
  // The number of batches before the checkpoint is saved; 0: the training starts from the checkpoint.
  std::size_t save_after = 0;
};

// Trains three epochs on shuffled data, with random numbers in each step.
Course read_and_train(const fs::path& folder, const Interruption& at) {
  acc::Accelerator accelerator({.dispatch_batches = at.dispatch, .rng_types = {acc::RngType::torch}});
  acc::set_seed(at.save_after > 0 ? 1 : 2);
  auto net = std::make_shared<NetImpl>();
  auto [model, optimizer, loader] = accelerator.prepare(
      net,
      std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)),
      acc::DataLoader(acc::TensorDataset(at::arange(100, at::kFloat).sin().reshape({50, 2})),
                      {.batch_size = 4, .shuffle = true, .num_workers = at.num_workers}));
  if (at.save_after == 0) accelerator.load_state(folder);
  Course course;
  while (loader.epoch() < 3) {
    for (auto& [x] : loader) {
      course.batches.push_back(x);
      // The generators of the processes diverge.
      at::randn({1 + accelerator.process_index()});
      optimizer.zero_grad();
      accelerator.backward(model(x).square().mean());
      optimizer.step();
      if (course.batches.size() == at.save_after) accelerator.save_state(folder);
    }
  }
  course.parameters = flat(*net);
  return course;
}

}  // namespace

TEST_CASE(
    "checkpoints: saved in the middle of an epoch, a training goes on with the very next batches, to the bit",
    "[ranks]") {
  const bool dispatch = GENERATE(false, true);
  const std::size_t workers = GENERATE(std::size_t{0}, std::size_t{2});
  // Within the first epoch, within the second, and at the last batch of one.
  const auto processes = static_cast<std::size_t>(acc::PartialState().num_processes());
  const std::size_t epoch = (13 + processes - 1) / processes;
  const std::size_t save_after = GENERATE_COPY(std::size_t{2}, epoch, epoch + 3);
  CAPTURE(dispatch, workers, save_after);
  const fs::path folder = common_folder(acc::Accelerator()) / "checkpoint";
  const Course whole = read_and_train(folder, {dispatch, workers, save_after});
  REQUIRE(whole.batches.size() == 3 * epoch);
  const Course resumed = read_and_train(folder, {dispatch, workers, 0});
  REQUIRE(resumed.batches.size() == 3 * epoch - save_after);
  for (std::size_t i = 0; i < resumed.batches.size(); ++i)
    CHECK(resumed.batches[i].equal(whole.batches[save_after + i]));
  CHECK(resumed.parameters.equal(whole.parameters));
}

TEST_CASE("checkpoints: a resumed training ends like the uninterrupted one, bit for bit", "[ranks]") {
  // DDP rebuilds its buckets after the first step, unless it looks for unused parameters. The position of an
  // element in the buckets determines the order in which Gloo adds more than two numbers.
  const acc::DdpOptions ddp{.find_unused_parameters = GENERATE(false, true)};
  const fs::path folder = common_folder(acc::Accelerator()) / "checkpoint";
  const int save_after = GENERATE(1, 4);
  CAPTURE(ddp.find_unused_parameters, save_after);
  const at::Tensor whole = train(folder, save_after, ddp);
  CHECK(train(folder, 0, ddp).equal(whole));
}

TEST_CASE("checkpoints: a checkpoint during an accumulation contains the gradients so far", "[ranks]") {
  const fs::path folder = common_folder(acc::Accelerator()) / "checkpoint";
  const at::Tensor whole = accumulate(folder, 5);
  CHECK(fs::exists(folder / acc::detail::gradients_file(acc::PartialState().process_index())));
  CHECK(accumulate(folder, 0).equal(whole));
  // At the end of an accumulation there are none.
  accumulate(folder, 6);
  CHECK_FALSE(fs::exists(folder / acc::detail::gradients_file(0)));
}

TEST_CASE("checkpoints: a load drops the gradients of the step that it takes back", "[ranks]") {
  const fs::path folder = common_folder(acc::Accelerator()) / "checkpoint";
  acc::Accelerator accelerator({.gradient_accumulation_steps = 2});
  auto net = std::make_shared<NetImpl>();
  net->eval();
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
  const auto step = [&](double x) {
    const auto batch = accelerator.accumulate(model);
    accelerator.backward(model(at::full({1, 2}, x, accelerator.device())).sum());
    optimizer.step();
    optimizer.zero_grad();
  };
  const auto one_step = [&] {
    step(3);
    step(4);
    return flat(*net).clone();
  };
  step(1);
  step(2);
  accelerator.save_state(folder);
  const at::Tensor expected = one_step();
  const bool is_half = GENERATE(false, true);
  step(1000);
  if (!is_half) step(1000);
  accelerator.load_state(folder);
  CHECK(one_step().equal(expected));
}

TEST_CASE("checkpoints: numbering continues after a load, and the newest are kept", "[ranks]") {
  const fs::path project = common_folder(acc::Accelerator());
  const acc::AcceleratorOptions options = {
      .project_dir = project, .project = {.automatic_checkpoint_naming = true, .total_limit = 2}};
  {
    acc::Accelerator accelerator(options);
    auto model = accelerator.prepare(std::make_shared<NetImpl>());
    for (int i = 0; i < 3; ++i)
      CHECK(accelerator.save_state() == project / "checkpoints" / ("checkpoint_" + std::to_string(i)));
    accelerator.wait_for_everyone();
    CHECK(numbers_in(project) == std::vector<std::int64_t>{1, 2});
    accelerator.wait_for_everyone();
  }
  acc::Accelerator accelerator(options);
  auto model = accelerator.prepare(std::make_shared<NetImpl>());
  accelerator.project().iteration = 2;
  CHECK(acc::test::error_of([&] { accelerator.save_state(); }).find("checkpoint_2: already exists") !=
        std::string::npos);
  accelerator.load_state();
  CHECK(accelerator.save_iteration() == 3);
  accelerator.save_state();
  accelerator.wait_for_everyone();
  CHECK(numbers_in(project) == std::vector<std::int64_t>{2, 3});
  accelerator.wait_for_everyone();
}

TEST_CASE("checkpoints: a new training keeps what it saves, also beside an old one's higher numbers",
          "[ranks]") {
  const fs::path project = common_folder(acc::Accelerator());
  acc::Accelerator accelerator(
      {.project_dir = project, .project = {.automatic_checkpoint_naming = true, .total_limit = 2}});
  if (accelerator.is_main_process())
    for (const int number : {38, 39})
      fs::create_directories(acc::detail::numbered_checkpoint(project / "checkpoints", number));
  accelerator.wait_for_everyone();
  auto model = accelerator.prepare(std::make_shared<NetImpl>());
  const acc::SaveStateOptions options{.background = GENERATE(false, true)};
  for (int i = 0; i < 3; ++i) accelerator.save_state({}, options);
  accelerator.wait_for_save();
  accelerator.wait_for_everyone();
  CHECK(numbers_in(project) == std::vector<std::int64_t>{2, 39});
  accelerator.wait_for_everyone();
}

// As on machines that share no folder: the other processes have none where the main process saves.
TEST_CASE("checkpoints: a training whose checkpoints only the main process has ends on all", "[ranks]") {
  const fs::path folder = common_folder(acc::Accelerator());
  const std::string rank = std::to_string(acc::Accelerator().process_index());
  acc::TrainingArguments arguments;
  arguments.output_dir = folder / ("of_rank_" + rank);
  arguments.max_steps = 2;
  arguments.save_strategy = acc::SaveStrategy::steps;
  arguments.eval_strategy = acc::IntervalStrategy::steps;
  arguments.save_steps = 1;
  arguments.eval_steps = 1;
  arguments.metric_for_best_model = "loss";
  arguments.save_only_model = true;
  arguments.save_total_limit = 1;
  arguments.disable_tqdm = true;
  const at::Tensor x = at::arange(8, at::kFloat).view({8, 1});
  const acc::TensorDataset<2> data(x, x);
  acc::Trainer trainer(torch::nn::Linear(1, 1), arguments, data, data);
  trainer.train();
  const acc::Accelerator& accelerator = trainer.accelerator();
  CHECK(accelerator.gather(at::full({1}, accelerator.process_index(), at::kLong)).size(0) ==
        accelerator.num_processes());
}

TEST_CASE("checkpoints: when one process cannot write, all report it, and the old checkpoint is kept",
          "[ranks]") {
  acc::Accelerator accelerator;
  const fs::path folder = common_folder(accelerator) / "checkpoint";
  auto model = accelerator.prepare(std::make_shared<NetImpl>());
  Counter counter;
  accelerator.register_for_checkpointing(counter);
  counter.value = 1;
  accelerator.save_state(folder);
  counter.value = 2;
  const int last = accelerator.num_processes() - 1;
  acc::HookHandle hook =
      accelerator.register_save_state_pre_hook([&](auto& /*weights*/, const fs::path& into) {
        // A folder has the name of the file that it has to write.
        if (accelerator.process_index() == last)
          fs::create_directories(into / acc::detail::random_states_file(last));
      });
  const std::string error = acc::test::error_of([&] { accelerator.save_state(folder); });
  INFO(error);
  CHECK(error.find("random_states_" + std::to_string(last) + ".pkl: cannot be replaced") !=
        std::string::npos);
  hook.remove();
  accelerator.wait_for_everyone();
  CHECK_FALSE(fs::exists(folder.parent_path() / ".checkpoint.acc-new"));
  accelerator.wait_for_everyone();
  accelerator.load_state(folder);
  CHECK(counter.value == 1);
  accelerator.save_state(folder);
}

// Runs in a separate job in which every process is told that it is the only one on its machine. Each has its
// own folder, as machines have their own disks.
TEST_CASE("checkpoints: save_on_each_node writes the shared files on each machine", "[.machines]") {
  ::setenv("LOCAL_RANK", "0", 1);
  ::setenv("LOCAL_WORLD_SIZE", "1", 1);
  const bool on_each = GENERATE(false, true);
  acc::Accelerator accelerator({.project = {.save_on_each_node = on_each}});
  const fs::path folder = acc::test::temporary_folder();
  auto model = accelerator.prepare(std::make_shared<NetImpl>());
  accelerator.save(acc::PtDict{{"epoch", 3}}, folder / "epoch.pt");
  accelerator.save_model(model, folder / "weights");
  accelerator.save_state(folder / "checkpoint");
  const bool writes = on_each || accelerator.is_main_process();
  CHECK(fs::exists(folder / "epoch.pt") == writes);
  CHECK(fs::exists(folder / "weights" / "model.safetensors") == writes);
  CHECK(fs::exists(folder / "checkpoint" / "model.safetensors") == writes);
  CHECK(fs::exists(folder / "checkpoint" / acc::detail::random_states_file(accelerator.process_index())));
  if (writes) CHECK(acc::read_pt_file(folder / "epoch.pt").find("epoch")->number() == 3);
}

// Runs in the same job.
TEST_CASE("checkpoints: machines may share the disk or not, and leftovers of a killed save are not loaded",
          "[.machines]") {
  ::setenv("LOCAL_RANK", "0", 1);
  ::setenv("LOCAL_WORLD_SIZE", "1", 1);
  acc::Accelerator accelerator;
  const bool is_shared = GENERATE(false, true);
  const fs::path folder = is_shared ? common_folder(accelerator) : acc::test::temporary_folder();
  const fs::path checkpoint = folder / "checkpoint";
  auto model = accelerator.prepare(std::make_shared<NetImpl>());
  Counter counter;
  accelerator.register_for_checkpointing(counter);
  acc::replace_file(folder / ".checkpoint.acc-new" / "custom_checkpoint_9.pkl", std::string_view("left"));
  accelerator.wait_for_everyone();
  for (const int value : {1, 2}) {
    counter.value = value;
    accelerator.save_state(checkpoint);
    accelerator.wait_for_everyone();
    CHECK(fs::exists(checkpoint / acc::detail::random_states_file(accelerator.process_index())));
    CHECK_FALSE(fs::exists(checkpoint / "custom_checkpoint_9.pkl"));
    CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
    accelerator.wait_for_everyone();
  }
  if (is_shared) {
    counter.value = 0;
    accelerator.load_state(checkpoint);
    CHECK(counter.value == 2);
  }
  accelerator.wait_for_everyone();
}

// Saves checkpoints until it is killed, or as many as ACC_TEST_SAVES says; all values of a checkpoint are the
// same number. First checks what the process before has left. With ACC_TEST_BACKGROUND the values of the next
// one are set while the last is written.
TEST_CASE("checkpoints: saves until it is killed", "[.saver]") {
  const acc::Environment environment = acc::Environment::of_process();
  const bool background = environment.contains("ACC_TEST_BACKGROUND");
  acc::AcceleratorOptions options{.project_dir = environment.get("ACC_TEST_FOLDER"),
                                  .project = {.automatic_checkpoint_naming = true, .total_limit = 2}};
  if (environment.contains("ACC_TEST_SHARDS"))
    options.fsdp = acc::FsdpOptions{.state_dict_type = acc::StateDictType::sharded};
  acc::Accelerator accelerator(options);
  auto net = std::make_shared<torch::nn::LinearImpl>(256, 256);
  auto sgd =
      std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  Counter counter;
  accelerator.register_for_checkpointing(counter);
  accelerator.backward(model(at::randn({1, 256})).sum());
  optimizer.step();
  const at::NoGradGuard no_grad;
  // Those of all parameters, or of this process's shards.
  const auto momenta = [&] {
    std::vector<at::Tensor> all;
    for (const auto& [parameter, state] : sgd->state())
      all.push_back(static_cast<torch::optim::SGDParamState&>(*state).momentum_buffer());
    return all;
  };
  const auto set_all = [&](std::int64_t number) {
    counter.value = number;
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    for (const at::Tensor& parameter : net->parameters()) parameter.fill_(static_cast<double>(number));
    for (const at::Tensor& momentum : momenta()) momentum.fill_(static_cast<double>(number));
  };
  const auto say = [&](const char* what, std::int64_t number) {
    std::printf("%s %d %lld %zu\n", what, static_cast<int>(::getpid()), static_cast<long long>(number),
                numbers_in(accelerator.project_dir()).size());
    std::fflush(stdout);
  };

  if (!numbers_in(accelerator.project_dir()).empty()) {
    accelerator.load_state();
    const auto number = static_cast<double>(counter.value);
    const acc::GatheredParameters whole = accelerator.gathered_parameters(model);
    for (const at::Tensor& parameter : net->parameters()) REQUIRE(parameter.eq(number).all().item<bool>());
    for (const at::Tensor& momentum : momenta())
      // Between parameters shards have zeros.
      REQUIRE((momentum.max().item<double>() == number &&
               (momentum * (momentum - number)).eq(0).all().item<bool>()));
  }
  say("whole", counter.value);
  const auto saves = acc::parse_integer(environment.get("ACC_TEST_SAVES"));
  const std::int64_t first = counter.value + 1;
  for (std::int64_t number = first; !saves || number < first + *saves; ++number) {
    set_all(number);
    accelerator.save_state({}, {.background = background});
    set_all(number + 1);
    if (background && number > first) say("saved", number - 1);
    if (!background) say("saved", number);
  }
}
