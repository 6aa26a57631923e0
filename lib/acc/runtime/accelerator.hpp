// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <chrono>
#include <concepts>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "acc/runtime/data/data_loader.hpp"
#include "acc/runtime/optim/optimizer.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/model.hpp"
#include "acc/runtime/parallel/process_group.hpp"
#include "acc/runtime/precision/autocast.hpp"
#include "acc/runtime/random.hpp"

namespace acc {

struct AcceleratorOptions {
  /// Default: ACCELERATE_MIXED_PRECISION, else no.
  std::optional<MixedPrecision> mixed_precision = {};
  /// How long a process waits for the others before it gives up.
  std::chrono::milliseconds timeout = kDefaultTimeout;
  DdpOptions ddp = {};
  /// Prepared loaders give every process the same number of full batches.
  bool even_batches = true;
  /// The loaders' batch size is that of all processes together.
  bool split_batches = false;
};

/// A process's place in the job, and what it takes to train together: as accelerate's Accelerator in Python.
/// Started by `acc launch`, `torchrun` or alone; the same program then runs on many processes or one. All
/// processes call the functions marked "together", in the same order; those throw Error{system} when another
/// process is lost.
class Accelerator {
 public:
  /// Together: joins the job that the environment describes. Throws Error{usage} for an environment that
  /// makes no sense or a precision that is not supported, Error{rendezvous} when the others do not come.
  explicit Accelerator(AcceleratorOptions options = {});
  ~Accelerator();
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  int num_processes() const;
  int process_index() const;
  int local_process_index() const;
  bool is_main_process() const { return process_index() == 0; }
  bool is_local_main_process() const { return local_process_index() == 0; }
  bool is_last_process() const { return process_index() == num_processes() - 1; }
  bool distributed() const { return num_processes() > 1; }
  at::Device device() const { return at::Device(at::kCPU); }
  MixedPrecision mixed_precision() const;

  /// What the processes talk through; null where this process is the only one.
  std::shared_ptr<ProcessGroup> process_group() const;

  /// Together: makes models, optimizers and data loaders ready, and gives them back in order: one alone,
  /// several as a tuple, as in `auto [model, optimizer, loader] = accelerator.prepare(net, std::move(sgd),
  /// std::move(loader))`.
  template <class First, class... Rest>
  auto prepare(First&& first, Rest&&... rest) {
    if constexpr (sizeof...(Rest) == 0) {
      return prepare_one(std::forward<First>(first));
    } else {
      // Braces evaluate from left to right: every process prepares in the same order.
      return std::tuple<decltype(prepare_one(std::forward<First>(first))),
                        decltype(prepare_one(std::forward<Rest>(rest)))...>{
          prepare_one(std::forward<First>(first)), prepare_one(std::forward<Rest>(rest))...};
    }
  }

  /// Together: a module, as a shared_ptr or as LibTorch's holder. Throws Error{usage}, see Ddp.
  template <class Module>
  Model<Module> prepare_model(std::shared_ptr<Module> module) {
    auto ddp = make_ddp(module);
    return Model<Module>(std::move(module), std::move(ddp), mixed_precision());
  }

  /// An optimizer, moved here, or as a shared_ptr.
  template <class Native>
  requires(!std::is_lvalue_reference_v<Native>) Optimizer prepare_optimizer(Native&& optimizer) {
    return Optimizer(std::make_shared<std::remove_cvref_t<Native>>(std::forward<Native>(optimizer)));
  }
  template <class Native>
  Optimizer prepare_optimizer(std::shared_ptr<Native> optimizer) {
    return Optimizer(std::move(optimizer));
  }

  /// Together: the loader then gives this process its share of the batches.
  template <class Dataset>
  DataLoader<Dataset> prepare_data_loader(DataLoader<Dataset> loader) {
    share(loader.plan());
    loader.set_active_loaders(active_loaders());
    return loader;
  }

  /// The module inside of a prepared model.
  template <class Module>
  std::shared_ptr<Module> unwrap_model(const Model<Module>& model) const {
    return model.module();
  }

  /// Together: computes gradients and averages them over all processes.
  void backward(const at::Tensor& loss);

  /// The chosen precision for code outside of a prepared model's forward.
  Autocast autocast() const { return Autocast(mixed_precision()); }

  /// Together: the tensors of all processes one after the other along dimension 0; a 0-d one counts as one
  /// element. Throws Error{usage} on every rank when shapes or types differ.
  at::Tensor gather(const at::Tensor& tensor);

  /// Together: as gather, without the samples that fill up the last batch of the loader that is being read:
  /// over a whole pass each sample comes exactly once.
  at::Tensor gather_for_metrics(const at::Tensor& tensor);
  template <std::same_as<at::Tensor>... More>
  requires(sizeof...(More) >
           0) std::array<at::Tensor, 1 + sizeof...(More)> gather_for_metrics(const at::Tensor& tensor,
                                                                             const More&... more) {
    return {gather_for_metrics(tensor), gather_for_metrics(more)...};
  }

  /// Together: the sum, mean or maximum over all processes, on each of them.
  at::Tensor reduce(const at::Tensor& tensor, ReduceOp op = ReduceOp::sum);

  /// Together: rank `from`'s tensor, on each process. All must have one shape and type.
  at::Tensor broadcast(const at::Tensor& tensor, int from = 0);

  /// Together: returns when every process has called it.
  void wait_for_everyone();

  /// Calls `act` on the main process first and on the others when it is done there. Together.
  template <class Act>
  void main_process_first(Act act) {
    if (!is_main_process()) wait_for_everyone();
    act();
    if (is_main_process()) wait_for_everyone();
  }

  /// A line on standard output, from the first process of each machine.
  void print(std::string_view line) const;

  /// The main process writes the model as a safetensors file, with the names of Python's state_dict, in one
  /// step; the others return at once. Throws Error{system} when it cannot.
  template <class Module>
  void save_model(const Model<Module>& model, const std::filesystem::path& file) const {
    save_module(*model.module(), file);
  }

  /// Every process reads the file. Throws Error with all names and shapes that do not match; the model is
  /// then unchanged.
  template <class Module>
  void load_model(Model<Module>& model, const std::filesystem::path& file) const {
    load_module(*model.module(), file);
  }

 private:
  struct Impl;

  template <class Module>
  Model<Module> prepare_one(std::shared_ptr<Module> module) {
    return prepare_model(std::move(module));
  }
  template <class Holder>
  requires requires(Holder holder) { typename std::remove_cvref_t<Holder>::ContainedType; }
  auto prepare_one(Holder&& holder) { return prepare_model(holder.ptr()); }
  template <class Dataset>
  DataLoader<Dataset> prepare_one(DataLoader<Dataset> loader) {
    return prepare_data_loader(std::move(loader));
  }
  template <class Native>
  requires requires(Native optimizer) { optimizer.param_groups(); }
  Optimizer prepare_one(Native&& optimizer) {
    static_assert(!std::is_lvalue_reference_v<Native>, "an optimizer is given with std::move");
    return prepare_optimizer(std::forward<Native>(optimizer));
  }

  std::shared_ptr<Ddp> make_ddp(std::shared_ptr<torch::nn::Module> module);
  void share(LoaderPlan& plan);
  std::shared_ptr<ActiveLoaders> active_loaders() const;
  void save_module(const torch::nn::Module& module, const std::filesystem::path& file) const;
  void load_module(torch::nn::Module& module, const std::filesystem::path& file) const;

  std::unique_ptr<Impl> impl_;
};

}  // namespace acc
