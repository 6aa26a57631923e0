// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/runtime/accelerator/accelerator_options.hpp"
#include "acc/runtime/accelerator/checkpointing.hpp"
#include "acc/runtime/accelerator/preparation.hpp"
#include "acc/runtime/accelerator/profile.hpp"
#include "acc/runtime/optim/optimizer.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/join.hpp"
#include "acc/runtime/parallel/model.hpp"
#include "acc/runtime/precision/autocast.hpp"
#include "acc/runtime/process/partial_state.hpp"
#include "acc/runtime/sharded/gathered_parameters.hpp"
#include "acc/runtime/tensors/nested_tensors.hpp"
#include "acc/runtime/tensors/random.hpp"
#include "acc/runtime/tracking/tracker.hpp"

namespace acc {

/// The arguments of Python's Tensor.backward, with its defaults.
struct BackwardOptions {
  /// Keeps the graph, for another backward through it. Default: create_graph.
  std::optional<bool> retain_graph = {};
  /// Makes the gradients part of a graph of their own. Averaged gradients cannot be: see
  /// Accelerator::backward.
  bool create_graph = false;
  /// The tensors that get gradients. Default: all from which the loss was computed.
  std::vector<at::Tensor> inputs = {};
};

/// The result of Accelerator::accumulate, which must exist for the duration of a batch.
class Accumulation {
 public:
  /// Keeps `models` from averaging gradients while this object exists.
  explicit Accumulation(const std::vector<std::shared_ptr<detail::DistributedModule>>& models) {
    for (const auto& model : models) guards_.emplace_back(model);
  }
  Accumulation(const Accumulation&) = delete;
  Accumulation& operator=(const Accumulation&) = delete;

 private:
  std::list<NoSync> guards_ = {};
};

/// Lets the same program train on one or many processes, as the Accelerator of Python's accelerate. The
/// program may be started alone, by `acc launch` or by `torchrun`. It is a PartialState, whose functions tell
/// which process this is and communicate with the others. All processes must call the functions marked
/// "together", in the same order; those throw Error{system} when another process is lost.
class Accelerator : public PartialState {
 public:
  /// Together: joins the job that the environment variables describe, see PartialState. Throws Error{usage}
  /// for invalid options or variables, such as an unknown tracker or one without a folder, and when another
  /// Accelerator that still exists has another precision.
  explicit Accelerator(AcceleratorOptions options = {});
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  /// The processes, for functions in which they save together, such as save_sharded.
  SavingProcesses saving_processes() const { return detail::processes_of(*this); }

  /// The precision of prepared models.
  MixedPrecision mixed_precision() const { return preparation_.mixed_precision(); }
  /// The option of this name.
  bool split_batches() const { return preparation_.options().split_batches; }
  /// The option of this name.
  std::optional<bool> dispatch_batches() const { return preparation_.options().dispatch_batches; }
  /// Whether prepared loaders give all processes the same number of full batches.
  bool even_batches() const { return preparation_.options().even_batches; }
  /// Affects loaders that are prepared later.
  void set_even_batches(bool on) { preparation_.options().even_batches = on; }
  /// The option of this name.
  bool device_placement() const { return preparation_.options().device_placement; }
  /// The option of this name.
  const std::filesystem::path& project_dir() const { return preparation_.options().project_dir; }
  /// Default: project_dir.
  const std::filesystem::path& logging_dir() const { return preparation_.options().project.logging_dir; }
  /// May be changed, for example to continue the numbering of checkpoints.
  ProjectOptions& project() { return preparation_.options().project; }
  const ProjectOptions& project() const { return preparation_.options().project; }
  /// The number of the next checkpoint.
  int save_iteration() const { return project().iteration; }
  /// Null unless mixed_precision is fp16.
  const std::shared_ptr<GradScaler>& scaler() const { return prepared().scaler; }

  /// Together: prepares models, optimizers, data loaders and schedulers, in any order, and returns them,
  /// several as a tuple: `auto [model, optimizer, loader] = accelerator.prepare(net, std::move(sgd),
  /// std::move(loader))`. Objects that are already prepared are returned unchanged.
  template <class... Objects>
  auto prepare(Objects&&... objects) {
    return preparation_.prepare(std::forward<Objects>(objects)...);
  }

  using ModelOptions = detail::Preparation::ModelOptions;  ///< The options of prepare_model.

  /// Together: prepares a module. Throws Error{usage}, see DdpReplica and ShardedModule.
  template <detail::TorchModule Module>
  Model<Module> prepare_model(std::shared_ptr<Module> module, const ModelOptions& options = {}) {
    return preparation_.prepare_model(std::move(module), options);
  }

  /// Prepares an optimizer, which is moved or a shared_ptr.
  template <detail::TorchOptimizer Native>
  Optimizer prepare_optimizer(Native&& optimizer) {
    return preparation_.prepare_optimizer(std::forward<Native>(optimizer));
  }
  template <detail::TorchOptimizer Native>
  Optimizer prepare_optimizer(std::shared_ptr<Native> optimizer) {
    return preparation_.prepare_optimizer(std::move(optimizer));
  }

  using LoaderOptions = detail::Preparation::LoaderOptions;  ///< The options of prepare_data_loader.

  /// Together: returns a loader that reads this process's share of the batches.
  template <class Dataset>
  DataLoader<Dataset> prepare_data_loader(DataLoader<Dataset> loader, const LoaderOptions& options = {}) {
    return preparation_.prepare_data_loader(std::move(loader), options);
  }

  /// Prepares a scheduler of acc or LibTorch. Throws Error{usage} for one of LibTorch whose optimizer was
  /// moved.
  template <detail::AnyScheduler Native>
  AcceleratedScheduler<Native> prepare_scheduler(std::shared_ptr<Native> scheduler) {
    return preparation_.prepare_scheduler(std::move(scheduler));
  }

  /// The prepared objects.
  Prepared& prepared() { return preparation_.prepared(); }
  const Prepared& prepared() const { return preparation_.prepared(); }

  /// The module of a prepared model.
  template <class Module>
  std::shared_ptr<Module> unwrap_model(const Model<Module>& model) const {
    return model.module();
  }

  /// Together: while the result exists, the parameters of a sharded model can be read and changed, as for a
  /// moving average of them. Without sharding it does nothing.
  template <class Module>
  [[nodiscard]] GatheredParameters gathered_parameters(const Model<Module>& model) const {
    return GatheredParameters(preparation_.sharded_module(*model.module()));
  }

  /// Begins a batch, which lasts as long as the result exists: `const auto batch =
  /// accelerator.accumulate(model);` at the top of the loop. Gradients are accumulated over
  /// `gradient_accumulation_steps` batches, or until the loader's last batch. Before that, prepared
  /// optimizers and schedulers do not step, and the gradients of replicated models are not averaged; those of
  /// sharded models are, in every batch, so that no process needs memory for all of them.
  template <class... Modules>
  [[nodiscard]] Accumulation accumulate(const Model<Modules>&... models) {
    return begin_batch({models.distributed()...});
  }

  /// While the result exists, gradients are accumulated on this process only.
  template <class Module>
  [[nodiscard]] NoSync no_sync(const Model<Module>& model) const {
    return model.no_sync();
  }

  /// Together: makes the next backward average the accumulated gradients although its forward ran under
  /// no_sync, as when one of several backwards ends the step. Throws Error{usage}, see
  /// DistributedModule::synchronize_next_backward.
  template <class Module>
  void trigger_sync_in_backward(const Model<Module>& model) const {
    if (model.distributed()) model.distributed()->synchronize_next_backward();
  }

  /// Whether this batch ends with a step of the optimizers.
  bool sync_gradients() const;
  void set_sync_gradients(bool on);         ///< Overrides it until the next batch begins.
  int gradient_accumulation_steps() const;  ///< The number of batches for each step of the optimizers.
  void set_gradient_accumulation_steps(int steps);  ///< Affects the batches that begin later.
  /// The number of batches that accumulate() has counted since the last end of a loader.
  std::int64_t step() const;

  /// Together: computes the gradients of `loss`, divided by gradient_accumulation_steps and scaled in fp16,
  /// and averages them over all processes. Throws Error{usage} when a prepared model received gradients
  /// although its forward was not called through the prepared model, or twice after one forward: they were
  /// not averaged. Also throws it for gradients with a graph (create_graph), unless they stay on this process
  /// (no_sync) or there is one process.
  void backward(const at::Tensor& loss, const BackwardOptions& options = {});

  /// Together: throws Error{usage} on every process, naming the parameter and the ranks, when the parameters
  /// of a prepared model are not bit-identical on all processes. AcceleratorOptions::check_parameters_every
  /// calls it regularly.
  void check_parameters() const;

  /// Together: calls `train`, in which processes may train on different numbers of batches; see
  /// acc::join_uneven_inputs. As in accelerate, if batches are even it just calls `train`, so pass
  /// `{.even_batches = false}`, unless that is the Accelerator's option.
  void join_uneven_inputs(const std::vector<Joinable>& models, const JoinOptions& options,
                          const std::function<void()>& train);
  void join_uneven_inputs(const std::vector<Joinable>& models, const std::function<void()>& train) {
    join_uneven_inputs(models, {}, train);
  }

  /// In fp16, divides the gradients of all optimizers, or of one, by the scale of the loss, so that they can
  /// be used. Throws Error{usage} while gradients accumulate.
  void unscale_gradients();
  void unscale_gradients(const Optimizer& optimizer);

  /// Together: these clip gradients as acc::clip_grad_norm and acc::clip_grad_value do, also those of sharded
  /// models. In fp16 they first unscale the gradients of the optimizers that have some of the parameters.
  /// Call them if sync_gradients() is true. They throw Error{usage} in fp16 for parameters that do not belong
  /// to a prepared optimizer: their gradients would still be scaled. `parameters` are the model's own: the
  /// norm of those that the optimizer of a sharded model has, parts of shards, is refused.
  at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                             double norm_type = 2);
  /// Clips each gradient to [-clip_value, clip_value].
  void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);

  /// Whether an optimizer's last step was skipped because gradients overflowed in fp16.
  bool optimizer_step_was_skipped() const;

  /// Autocast with the chosen precision, for code outside of a prepared model's forward.
  Autocast autocast(AutocastOptions options = {}) const {
    return Autocast(mixed_precision(), device().type(), options);
  }

  /// Together: gathers like gather(), but drops the repeated samples in the last batch of the loader that is
  /// being read, so that each sample is gathered exactly once in a pass. Vectors of other types than tensors
  /// are gathered by gather_object.
  template <class Input>
  Input gather_for_metrics(const Input& input) const {
    const std::optional<std::size_t> keep = new_samples();
    if constexpr (TensorStructure<Input>) {
      return map_tensors(gather(input), [&](const at::Tensor& all) {
        return keep ? all.slice(0, 0, static_cast<std::int64_t>(*keep)) : all;
      });
    } else if constexpr (detail::ListOfObjects<Input>) {
      Input all = gather_object(input);
      if (keep && *keep < all.size()) all.erase(all.begin() + static_cast<std::ptrdiff_t>(*keep), all.end());
      return all;
    } else {
      static_assert(
          detail::ListOfObjects<Input>,
          "gather_for_metrics takes tensors, structures of tensors, and vectors of numbers, texts or, "
          "with acc/objects.hpp, of what JSON can hold");
      return input;
    }
  }
  template <std::same_as<at::Tensor>... More>
    requires(sizeof...(More) > 0)
  std::array<at::Tensor, 1 + sizeof...(More)> gather_for_metrics(const at::Tensor& tensor,
                                                                 const More&... more) const {
    return {gather_for_metrics(tensor), gather_for_metrics(more)...};
  }

  /// Writes numbers, texts, tensors, and lists and dicts of them to a file, as torch.save; read_pt_file and
  /// Python, with weights_only=True, can read it. Does nothing unless should_save_model(). Throws what
  /// write_pt_file throws, and Error{system} when the file's folder is missing.
  void save(const PtValue& value, const std::filesystem::path& file) const {
    checkpointing_.save(value, file);
  }

  /// Whether this process writes shared files: true for the main process, with save_on_each_node for the
  /// local main process of each machine.
  bool should_save_model() const { return checkpointing_.should_save_model(); }

  /// The model's parameters and buffers under the names of Python's state_dict; they share its memory. For a
  /// sharded model this is a function for all processes together: the main process gets copies of all
  /// parameters, in float32, and the others get the buffers alone.
  template <class Module>
  NamedTensors get_state_dict(const Model<Module>& model) const {
    return checkpointing_.state_dict(*model.module());
  }

  /// Writes the model as safetensors with the names of Python's state_dict: to a single file if `place` ends
  /// in `.safetensors`; otherwise to the folder `place`, which is created if missing, in files of at most
  /// `max_shard_size` with an index, and removes weight files of an earlier save. Does nothing unless
  /// should_save_model(), except for a sharded model, which all processes save together. Throws
  /// Error{system}, also when the folder of a single file is missing.
  template <class Module>
  void save_model(const Model<Module>& model, const std::filesystem::path& place,
                  std::string_view max_shard_size = "10GB") const {
    checkpointing_.save_model(*model.module(), place, max_shard_size);
  }

  /// Loads weights that save_model or Python wrote to a file or folder, see read_weights; every process calls
  /// it. As PyTorch's load_state_dict, returns the names that are missing in the weights or in the model;
  /// they are errors if `strict`. Throws Error with all names and shapes that do not match; the model is then
  /// unchanged.
  template <class Module>
  IncompatibleKeys load_model(Model<Module>& model, const std::filesystem::path& place,
                              bool strict = true) const {
    return checkpointing_.load_model(*model.module(), place, strict);
  }

  /// Together: writes a checkpoint of everything that was prepared, the registered objects and each process's
  /// random states, see save_checkpoint, and returns its folder. With automatic_checkpoint_naming the folder
  /// is `checkpoints/checkpoint_<iteration>` in project_dir, and `folder` is ignored; when the checkpoint is
  /// complete, those with the lowest numbers are removed so that total_limit are left, but never this one.
  /// Throws Error{usage} without a folder, and when a numbered folder already exists.
  ///
  /// With `{.background = true}` each process copies what it writes and returns; the folder appears, whole,
  /// when threads have written the copies. There is one such save at a time: the next save_state, load_state,
  /// wait_for_save and end_training wait for it and throw its error; so does the destructor, which ends the
  /// program with an error that nobody has seen. The first one connects the processes once more; these
  /// connections, and the memory of the copy, at most that of the state, are kept until free_memory.
  std::filesystem::path save_state(const std::optional<std::filesystem::path>& folder = {},
                                   const SaveStateOptions& options = {}) {
    return checkpointing_.save_state(folder, options);
  }

  /// Together: the same in the memory of each machine, always in the background: in a job that was started
  /// with `--memory-checkpoints`, which keeps the newest two of these states for as long as it lives. `disk`,
  /// by default the folder of the next iteration in project_dir, is where the launcher puts the newest one
  /// when the job ends before its training. On several machines each has the whole state, sharded models too.
  /// A save that fails, as for lack of memory, is told on standard error, and the training goes on. In a job
  /// without such memory nothing is saved, which is told once. Throws Error{usage} where there is no folder.
  void save_state(InMemory where, const std::optional<std::filesystem::path>& disk = {},
                  const SaveStateOptions& options = {}) {
    checkpointing_.save_state(where, disk, options);
  }

  /// Returns when no save is under way in the background. Throws the error of the last one, unless another
  /// function has thrown it.
  void wait_for_save() { checkpointing_.wait_for_save(); }

  /// Loads a checkpoint of acc or accelerate into the prepared and registered objects, see load_checkpoint.
  /// Default, for which all processes must call it together: what resume() loads, or else the newest
  /// checkpoint of project_dir. Automatic naming continues after the newest one. Waits for a save in the
  /// background.
  void load_state(const std::optional<std::filesystem::path>& folder = {}) {
    checkpointing_.load_state(folder);
  }

  /// Together: after a restart in a job with `--memory-checkpoints`, loads the newest state that this
  /// training has saved, in memory or on a disk, if it is undamaged, else the one before. Returns whether
  /// there was one: a training that begins, and any job without such memory, has none. What must be prepared,
  /// registered and created in the same order is what load_state asks for, and each Accelerator resumes its
  /// own training. A state of several machines may be in the memory of one of them alone: the others get it
  /// from there.
  bool resume() { return checkpointing_.resume(); }

  /// The epochs of a training that are left, for a loop with one pass over the first prepared loader in each:
  /// 0 to `num_epochs` - 1, and after load_state or resume from the one that was under way. Throws
  /// Error{usage} if no loader was prepared.
  std::ranges::iota_view<std::uint64_t, std::uint64_t> epochs(std::uint64_t num_epochs) const;

  /// The same with one pass over this prepared loader in each, where the first is another, as one for
  /// evaluation.
  template <class Dataset>
  auto epochs(std::uint64_t num_epochs, const DataLoader<Dataset>& loader) const {
    return epochs_from(loader.epoch(), num_epochs);
  }

  /// Adds the states of objects to checkpoints. The objects must outlive the Accelerator, and be registered
  /// in the same order when a checkpoint is loaded.
  template <class... Objects>
  void register_for_checkpointing(Objects&... objects) {
    (checkpointing_.register_for_checkpointing(stateful(objects)), ...);
  }

  /// Adds a function that save_state calls first.
  HookHandle register_save_state_pre_hook(SaveStatePreHook hook) {
    return checkpointing_.register_save_state_pre_hook(std::move(hook));
  }
  /// Adds a function that load_state calls first.
  HookHandle register_load_state_pre_hook(LoadStatePreHook hook) {
    return checkpointing_.register_load_state_pre_hook(std::move(hook));
  }

  /// Sets a flag that all processes see at the next check_trigger, for example to stop training.
  void set_trigger() { triggered_ = true; }
  /// Together: whether any process has called set_trigger since the last check that returned true.
  bool check_trigger();

  /// Together: whether any process was asked to end, by SIGTERM, or by SIGUSR1 or SIGUSR2, which a launcher
  /// or an engine sends before a time limit or a preemption: `if (accelerator.should_stop()) {
  /// accelerator.save_state(); break; }` in the loop, and all processes leave it at the same step. Once true
  /// it stays true, and costs nothing. Before that a call is an all-reduce of one number on the CPU, which
  /// waits for the slowest process but not for CUDA devices; with `every`, only every `every`-th call is one,
  /// and the others return false. From the first call on these signals do nothing else, unless the program
  /// handles them itself: then should_stop() does not see them. Throws Error{usage} if `every` is less
  /// than 1.
  bool should_stop(std::int64_t every = 1);

  /// Calls `function` under LibTorch's profiler. With an output_trace_dir, which makes this a function for
  /// all processes together, each process writes `profile_<rank>.json` there and waits for the others. Throws
  /// Error{system} when the file cannot be written.
  template <class Function>
  void profile(const ProfileOptions& options, Function function) const {
    profile_to(trace_file(options), options, device(), function);
    if (!options.output_trace_dir.empty()) wait_for_everyone();
  }

  /// Starts the trackers of log_with. On all but the main process this and the next two functions do nothing.
  /// Throws Error{system} when files cannot be written.
  void init_trackers(const std::string& project, const TrackedConfig& config = {}) {
    trackers_.start(project, config);
  }

  /// Logs numbers, text and groups of numbers to the trackers: `accelerator.log({{"loss", loss}}, step)`.
  /// Throws Error{usage} before init_trackers, unless there are no trackers.
  void log(const TrackedValues& values, std::optional<std::int64_t> step = {}) {
    trackers_.log(values, step);
  }

  /// The tracker of this name; one that does nothing on other processes, and if log_with is empty. Throws
  /// Error{usage} for a name that is not in log_with.
  Tracker& get_tracker(std::string_view name) const { return trackers_.get(name); }

  /// Releases all prepared objects and resets the count of batches, for another training.
  void free_memory();
  /// The same as free_memory.
  void clear() { free_memory(); }

  /// Together: waits for a save in the background and for all processes, closes the trackers and leaves the
  /// job. Functions marked "together" throw Error{usage} afterwards, but for this one, which does nothing.
  /// Throws the error of the save.
  void end_training();

 private:
  static std::ranges::iota_view<std::uint64_t, std::uint64_t> epochs_from(std::uint64_t first,
                                                                          std::uint64_t num_epochs);
  void unscale_for_clipping(const std::vector<at::Tensor>& parameters);
  Accumulation begin_batch(std::vector<std::shared_ptr<detail::DistributedModule>> models);
  // The number of gathered rows that are not repetitions; absent if none of them is.
  std::optional<std::size_t> new_samples() const;
  std::filesystem::path trace_file(const ProfileOptions& options) const;

  // Their functions are repeated above, since a program has one object, whose promises are read in one
  // header. As base classes they would be a chain: each part needs the one before it.
  detail::Preparation preparation_;
  detail::Checkpointing checkpointing_;
  detail::Trackers trackers_;
  bool triggered_ = false;
  bool stopping_ = false;
  std::int64_t stop_checks_ = 0;
};

}  // namespace acc
