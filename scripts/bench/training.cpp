// SPDX-License-Identifier: Apache-2.0
// C++'s side of scripts/bench/training; training_peer.py is Python's.
//
//   acc-bench-training first
//   acc-bench-training MODE CONTROL ARGUMENT...
//
// `first` joins the job, reduces once and prints when that was done. Otherwise each line that comes through
// the FIFO CONTROL asks for a round, and the main process answers with a line of JSON: seconds, CPU seconds,
// and for step the last loss, for trainer the mean one, for idx and jpeg the number of images, for save and
// load the number of tensors, for reduce and its like that of operations, for background the seconds until
// the training could go on, for gpt those in which it stood still to save; for sharded and recomputed the
// last loss, and the peak of the memory that the training took. Everything is on the CPU unless
// ACC_BENCH_DEVICE says cuda.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <sched.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <tuple>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/base/worker_env.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/comm/flat_transfer.hpp"
#include "acc/runtime/data/dataset_files.hpp"
#include "acc/runtime/data/images/image_dataset.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "acc/runtime/modules/compiled_model.hpp"
#include "acc/runtime/optim/schedulers.hpp"
#include "acc/runtime/trainer/trainer.hpp"
#include "model.hpp"
#include "resnet.hpp"
#include "training_models.hpp"

namespace acc::bench {
namespace {

using Arguments = std::vector<std::string>;
/// Does the work of a round and returns what it gives.
using Work = std::function<double()>;

double seconds_of(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

bool on_cuda() {
  return Environment::of_process().get("ACC_BENCH_DEVICE") == "cuda";
}

// A job of this process alone, over NCCL on a device, as torch's in a job of one.
std::shared_ptr<ProcessGroup> group_of_one(at::Device device) {
  return std::make_shared<ProcessGroup>(WorkerEnv{.world_size = 1, .master_port = 0}, kDefaultTimeout,
                                        device);
}

// A process alone averages gradients with itself, as torch's DistributedDataParallel does.
Model<Network> make_data_parallel(Accelerator& accelerator, const std::shared_ptr<Network>& network) {
  if (accelerator.distributed()) return accelerator.prepare(network);
  const at::Device device = accelerator.device();
  network->to(device);
  return {network, Ddp(network, group_of_one(device)).replica(), MixedPrecision::no, device.type()};
}

// Steps on numbers that are random, and others in each process.
Work steps_of(Accelerator& accelerator, const Workload& workload, Model<Network> model, Optimizer optimizer) {
  set_seed(10 + static_cast<std::uint64_t>(accelerator.process_index()));
  const at::Tensor x = at::randn(workload.input).to(accelerator.device());
  const at::Tensor y = at::randint(10, {workload.input[0]}, at::kLong).to(accelerator.device());
  return [&accelerator, steps = workload.steps, x, y, model = std::move(model),
          optimizer = std::move(optimizer)]() mutable {
    double last = 0;
    for (int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      const at::Tensor loss = at::cross_entropy_loss(model(x), y);
      accelerator.backward(loss);
      optimizer.step();
      if (step + 1 == steps) last = loss.item<double>();
    }
    return last;
  };
}

// step NETWORK: data-parallel steps; step_alone: without communication; step_gloo: over Gloo.
Work make_steps(Accelerator& accelerator, const std::string& mode, const Arguments& arguments) {
  set_seed(1);
  const Workload workload = make_workload(arguments.at(0));
  Model<Network> model = make_data_parallel(accelerator, workload.network);
  Optimizer optimizer = accelerator.prepare(
      torch::optim::SGD(workload.network->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9)));
  Work steps = steps_of(accelerator, workload, model, std::move(optimizer));
  if (mode != "step_alone") return steps;
  return [steps = std::move(steps), model = std::move(model)] {
    const NoSync alone = model.no_sync();
    return steps();
  };
}

std::vector<at::Tensor> make_batch(const std::string& network, std::uint64_t seed) {
  const std::vector<std::int64_t> shape =
      network == "gpt" ? std::vector<std::int64_t>{8, 64} : make_workload(network).input;
  set_seed(seed);  // making a network has drawn
  if (network == "gpt") return {at::randint(256, shape, at::kLong)};
  at::Tensor x = at::randn(shape);
  return {x, at::randint(10, {shape[0]}, at::kLong)};
}

// compiled NETWORK PACKAGE STEPS: data-parallel steps of a package.
Work make_compiled(Accelerator& accelerator, const Arguments& arguments) {
  CompiledModel net(arguments.at(1));
  auto prepared = accelerator.prepare(
      net, torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9)));
  const auto seed = 10 + static_cast<std::uint64_t>(accelerator.process_index());
  return [&accelerator, prepared = std::move(prepared), batch = make_batch(arguments.at(0), seed),
          steps = std::stoi(arguments.at(2))]() mutable {
    auto& [model, optimizer] = prepared;
    at::Tensor loss;
    for (int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      loss = (batch.size() == 1 ? model(batch[0]) : model(batch[0], batch[1])).first;
      accelerator.backward(loss);
      optimizer.step();
    }
    return loss.item<double>();
  };
}

// sharded STAGE: steps of AdamW; stage 0 is DDP.
Work make_sharded(Accelerator& accelerator) {
  set_seed(1);
  const Workload workload = make_workload("deep");
  auto [model, optimizer] = accelerator.prepare(
      workload.network,
      torch::optim::AdamW(workload.network->parameters(), torch::optim::AdamWOptions(1e-3)));
  return steps_of(accelerator, workload, std::move(model), std::move(optimizer));
}

FsdpOptions stage(const std::string& number, const std::string& unit) {
  return {.reshard_after_forward = number == "3", .transformer_cls_to_wrap = {unit}};
}

// trainer NETWORK FOLDER: an epoch by a Trainer, from the same weights in each round.
Work make_trainer(const Arguments& arguments) {
  return [name = arguments.at(0), folder = arguments.at(1)] {
    const TrainerWorkload workload = make_trainer_workload(name);
    TrainingArguments how;
    how.output_dir = folder;
    how.per_device_train_batch_size = workload.batch_size;
    how.num_train_epochs = 1;
    how.learning_rate = 1e-3;
    how.use_cpu = !on_cuda();
    how.logging_strategy = IntervalStrategy::no;
    how.save_strategy = SaveStrategy::no;
    how.disable_tqdm = true;
    Trainer trainer(workload.network, how, TensorDataset<2>(workload.inputs, workload.labels));
    return trainer.train().training_loss;
  };
}

template <class Dataset>
double read_all(DataLoader<Dataset>& loader) {
  std::int64_t images = 0;
  at::Tensor last;
  for (auto& batch : loader) {
    images += batch[0].size(0);
    last = batch[0];
  }
  last.flatten()[0].item();  // a device is done with its copies
  return static_cast<double>(images);
}

template <class Dataset>
Work make_passes(Accelerator& accelerator, Dataset dataset, const std::string& workers, int passes) {
  DataLoader<Dataset> made(
      std::move(dataset),
      {.batch_size = 64, .shuffle = true, .num_workers = std::stoul(workers), .pin_memory = on_cuda()});
  if (on_cuda()) made = accelerator.prepare(std::move(made));
  auto loader = std::make_shared<DataLoader<Dataset>>(std::move(made));
  return [loader, passes] {
    double images = 0;
    for (int pass = 0; pass < passes; ++pass) images += read_all(*loader);
    return images;
  };
}

// idx FILE-OF-IMAGES FILE-OF-LABELS WORKERS: passes through digits in memory.
Work make_idx(Accelerator& accelerator, const Arguments& arguments) {
  const at::Tensor images = read_idx(arguments.at(0)).unsqueeze(1).to(at::kFloat).div_(255);
  const at::Tensor labels = read_idx(arguments.at(1)).to(at::kLong);
  return make_passes(accelerator, TensorDataset<2>(images, labels), arguments.at(2), 5);
}

// jpeg FOLDER WORKERS: a pass through photographs as networks are trained on them.
Work make_jpeg(Accelerator& accelerator, const Arguments& arguments) {
  ImageDataset dataset(
      image_folder(arguments.at(0)),
      {.transforms = {random_resized_crop(224), random_horizontal_flip()}, .normalize = Normalize{}});
  return make_passes(accelerator, std::move(dataset), arguments.at(1), 1);
}

// pets ARCHITECTURE SIZE frozen|free FOLDER BATCH WORKERS: fine-tunes on a pass through photographs, and
// gives their number.
Work make_pets(Accelerator& accelerator, const Arguments& arguments) {
  set_seed(1);
  ResNetD net(arguments.at(0), 2);
  net->train_encoder(arguments.at(2) == "free");
  const std::int64_t size = std::stol(arguments.at(1));
  DataLoader photographs(ImageDataset(image_folder(arguments.at(3)),
                                      {.transforms = {random_resized_crop(size, {.scale = {0.5, 1}})},
                                       .normalize = Normalize{}}),
                         {.batch_size = std::stoul(arguments.at(4)),
                          .shuffle = true,
                          .num_workers = std::stoul(arguments.at(5)),
                          .pin_memory = on_cuda()});
  const auto adam = std::make_shared<torch::optim::Adam>(net->parameters(), 3e-2 / 25);
  const auto one_cycle =
      std::make_shared<Scheduler>(*adam, one_cycle_lr({.max_lr = {3e-2}, .total_steps = 1'000'000}));
  auto prepared = accelerator.prepare(net, adam, one_cycle, std::move(photographs));
  return [&accelerator, prepared = std::move(prepared)]() mutable {
    auto& [model, optimizer, scheduler, loader] = prepared;
    std::int64_t seen = 0;
    at::Tensor loss;
    model->train();
    for (auto& [images, labels] : loader) {
      loss = at::cross_entropy_loss(model(images), labels);
      accelerator.backward(loss);
      optimizer.step();
      scheduler.step();
      optimizer.zero_grad();
      seen += images.size(0);
    }
    loss.item();  // a device is done with its steps
    return static_cast<double>(seen);
  };
}

// A model and its optimizer that have taken a step, and so have a state.
auto make_trained(Accelerator& accelerator, const std::string& network) {
  const Workload workload = make_workload(network);
  auto prepared = accelerator.prepare(
      workload.network,
      torch::optim::AdamW(workload.network->parameters(), torch::optim::AdamWOptions(1e-3)));
  accelerator.backward(std::get<0>(prepared)(at::ones(workload.input).to(accelerator.device())).sum());
  std::get<1>(prepared).step();
  return prepared;
}

// save FOLDER, load FOLDER: the state of a ResNet-18 and its optimizer.
Work make_checkpoint(Accelerator& accelerator, const std::string& mode, const Arguments& arguments) {
  auto trained = make_trained(accelerator, "resnet18");
  const auto tensors = static_cast<double>(std::get<0>(trained)->parameters().size());
  const bool saves = mode == "save";
  if (!saves) accelerator.save_state(arguments.at(0));
  return [&accelerator, saves, tensors, folder = arguments.at(0), trained = std::move(trained)] {
    if (saves) {
      accelerator.save_state(folder);
    } else {
      accelerator.load_state(folder);
    }
    return tensors;
  };
}

// at_once FOLDER, background FOLDER: a state of 400 MB.
Work make_large_checkpoint(Accelerator& accelerator, const std::string& mode, const Arguments& arguments) {
  return [&accelerator, background = mode == "background", folder = arguments.at(0),
          trained = make_trained(accelerator, "wide")] {
    const double began = seconds_of(CLOCK_MONOTONIC);
    accelerator.save_state(folder, {.background = background});
    const double goes_on = seconds_of(CLOCK_MONOTONIC);
    accelerator.wait_for_save();
    return goes_on - began;
  };
}

// gpt FOLDER: steps of the GPT example; gpt_in_memory: with three states in memory, about one a second.
Work make_gpt(Accelerator& accelerator, bool saves, const Arguments& arguments) {
  constexpr int kSaves = 3;
  constexpr int kStepsASave = 8;
  constexpr std::int64_t kBatch = 32;
  set_seed(1);
  Gpt net(gpt_options("nano"));
  const at::Tensor bytes = at::randint(GptImpl::kBytes, {kBatch, net->options().context}, at::kLong);
  return [=, &accelerator, prepared = accelerator.prepare(net, gpt_optimizer(net, 3e-3, 0.1)),
          folder = arguments.at(0)]() mutable {
    auto& [model, optimizer] = prepared;
    double stood_still = 0;
    for (int step = 1; step <= kSaves * kStepsASave; ++step) {
      optimizer.zero_grad();
      accelerator.backward(at::cross_entropy_loss(model(bytes).flatten(0, 1), bytes.flatten()));
      optimizer.step();
      if (!saves || step % kStepsASave != 0) continue;
      const double began = seconds_of(CLOCK_MONOTONIC);
      accelerator.save_state(in_memory, folder);
      stood_still += seconds_of(CLOCK_MONOTONIC) - began;
    }
    return stood_still;
  };
}

// recomputed STAGE keep|recompute: steps of a sharded GPT whose blocks backward computes again or not.
Work make_recomputed(Accelerator& accelerator) {
  constexpr int kSteps = 2;
  constexpr std::int64_t kBatch = 32;
  set_seed(1);
  Gpt net(gpt_options("micro"));
  const at::Tensor bytes = at::randint(GptImpl::kBytes, {kBatch, net->options().context}, at::kLong);
  return [=, &accelerator, prepared = accelerator.prepare(net, gpt_optimizer(net, 3e-4, 0.1))]() mutable {
    auto& [model, optimizer] = prepared;
    at::Tensor loss;
    for (int step = 0; step < kSteps; ++step) {
      optimizer.zero_grad();
      loss = at::cross_entropy_loss(model(bytes).flatten(0, 1), bytes.flatten());
      accelerator.backward(loss);
      optimizer.step();
    }
    return loss.item<double>();
  };
}

// reduce BYTES: all-reduces as DDP's; reduce_gloo: over Gloo.
Work make_reduces(Accelerator& accelerator, const Arguments& arguments) {
  const std::int64_t bytes = std::stol(arguments.at(0));
  const std::int64_t times = std::clamp<std::int64_t>((32 << 20) / bytes, 4, 200);
  std::vector<at::Tensor> tensors{at::zeros({bytes / static_cast<std::int64_t>(sizeof(float))})};
  return [&group = accelerator.process_group()->native(), tensors, times]() mutable {
    for (std::int64_t i = 0; i < times; ++i) group.allreduce(tensors)->wait();
    return static_cast<double>(times);
  };
}

// gather BYTES, scatter BYTES: as sharded models do it; gather_gloo and scatter_gloo: by Gloo's own
// operations.
Work make_flat(Accelerator& accelerator, const std::string& mode, const Arguments& arguments) {
  constexpr int kTimes = 4;
  const std::int64_t length =
      std::stol(arguments.at(0)) / static_cast<std::int64_t>(sizeof(float)) / accelerator.num_processes();
  at::Tensor flat = at::ones({length * accelerator.num_processes()});
  at::Tensor shard = flat.narrow(0, length * accelerator.process_index(), length);
  return [mode, flat, shard, group = accelerator.process_group()]() mutable {
    for (int i = 0; i < kTimes; ++i) {
      if (mode == "gather") {
        detail::FlatTransfer transfer = detail::start_all_gather(*group, flat, shard, 1);
        transfer.wait_received();
        transfer.wait_sent();
      } else if (mode == "scatter") {
        shard.copy_(detail::start_reduce_scatter(*group, flat, 1).finish());
      } else if (mode == "gather_gloo") {
        group->native()._allgather_base(flat, shard)->wait();
      } else {
        at::Tensor sum = at::empty_like(shard);
        group->native()._reduce_scatter_base(sum, flat)->wait();
        shard.copy_(sum.div_(group->size()));
      }
    }
    return static_cast<double>(kTimes);
  };
}

// Pins the process to a core, as many processes as there are cores apart from each other.
void pin(int local_rank) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  int remaining = local_rank % CPU_COUNT(&allowed);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || remaining-- > 0) continue;
    CPU_ZERO(&allowed);
    CPU_SET(core, &allowed);
    ::sched_setaffinity(0, sizeof allowed, &allowed);
    return;
  }
}

// Of this process's memory, from /proc/self/status.
double kibibytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name)) return std::stod(line.substr(name.size()));
  return 0;
}

Work make_work(Accelerator& accelerator, const std::string& mode, const Arguments& arguments) {
  if (mode == "sharded") return make_sharded(accelerator);
  if (mode == "recomputed") return make_recomputed(accelerator);
  if (mode == "compiled") return make_compiled(accelerator, arguments);
  if (mode.starts_with("gather") || mode.starts_with("scatter"))
    return make_flat(accelerator, mode, arguments);
  if (mode.starts_with("step")) return make_steps(accelerator, mode, arguments);
  if (mode == "reduce" || mode == "reduce_gloo") return make_reduces(accelerator, arguments);
  if (mode == "trainer") return make_trainer(arguments);
  if (mode == "idx") return make_idx(accelerator, arguments);
  if (mode == "jpeg") return make_jpeg(accelerator, arguments);
  if (mode == "pets") return make_pets(accelerator, arguments);
  if (mode.starts_with("gpt")) return make_gpt(accelerator, mode == "gpt_in_memory", arguments);
  if (mode == "save" || mode == "load") return make_checkpoint(accelerator, mode, arguments);
  if (mode == "at_once" || mode == "background") return make_large_checkpoint(accelerator, mode, arguments);
  throw Error({.what = "is no mode", .where = mode});
}

// The main process reads, the others are told.
bool next_round(Accelerator& accelerator, std::ifstream& control) {
  at::Tensor more = at::ones({1}, at::kByte);
  std::string line;
  if (accelerator.is_main_process() && !std::getline(control, line)) more.zero_();
  return accelerator.broadcast(more).item<bool>();
}

void serve(const std::string& mode, const std::string& control_file, const Arguments& arguments) {
  const bool half = mode == "pets" && on_cuda();
  AcceleratorOptions options{.mixed_precision = half ? MixedPrecision::fp16 : MixedPrecision::no,
                             .cpu = !on_cuda()};
  if (mode.ends_with("_gloo")) options.process_group.cpu_backend = CpuBackend::gloo;
  const bool is_sharded = mode == "sharded" || mode == "recomputed";
  if (is_sharded && arguments.at(0) != "0")
    options.fsdp = stage(arguments.at(0), mode == "sharded" ? "Layer" : "Block");
  if (mode == "recomputed") options.activation_checkpointing = arguments.at(1) == "recompute";
  if (is_sharded || mode.starts_with("gather") || mode.starts_with("scatter"))
    pin(static_cast<int>(parse_integer(Environment::of_process().get("LOCAL_RANK", "0")).value_or(0)));
  Accelerator accelerator(options);
  std::ifstream control;
  if (accelerator.is_main_process()) control.open(control_file);
  const double before = kibibytes("VmRSS:");
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const Work work = make_work(accelerator, mode, arguments);
  while (next_round(accelerator, control)) {
    const double began = seconds_of(CLOCK_MONOTONIC);
    const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    const double value = work();
    if (!accelerator.is_main_process()) continue;
    fmt::print("{{\"seconds\": {}, \"cpu\": {}, \"value\": {}, \"peak\": {}}}\n",
               seconds_of(CLOCK_MONOTONIC) - began, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu, value,
               kibibytes("VmHWM:") - before);
    std::fflush(stdout);
  }
}

void reduce_once() {
  Accelerator accelerator({.cpu = !on_cuda()});
  // A process alone has no other to reduce with, but its device has to be up.
  at::Tensor one = at::ones({1}, accelerator.device());
  if (!accelerator.distributed() && on_cuda()) group_of_one(one.device())->all_reduce(one, ReduceOp::sum);
  const double sum = accelerator.reduce(one).item<double>();
  if (sum != accelerator.num_processes()) throw Error({.what = "the sum is wrong", .where = "all-reduce"});
  if (accelerator.is_main_process()) fmt::print("{:.6f}\n", seconds_of(CLOCK_MONOTONIC));
}

}  // namespace
}  // namespace acc::bench

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "first") {
    acc::bench::reduce_once();
  } else {
    acc::bench::serve(words.at(0), words.at(1), {words.begin() + 2, words.end()});
  }
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "acc-bench-training: %s\n", error.what());
  return 1;
} catch (const c10::Error& error) {
  std::fprintf(stderr, "acc-bench-training: LibTorch: %s\n", error.what_without_backtrace());
  return 1;
}
