// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <concepts>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/accelerator_options.hpp"
#include "acc/runtime/checkpoint/checkpointing.hpp"
#include "acc/runtime/nested_tensors.hpp"
#include "acc/runtime/optim/optimizer.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/join.hpp"
#include "acc/runtime/parallel/model.hpp"
#include "acc/runtime/precision/autocast.hpp"
#include "acc/runtime/profile.hpp"
#include "acc/runtime/random.hpp"
#include "acc/runtime/tracking/trackers.hpp"

namespace acc {

/// A batch whose gradients are accumulated: what Accelerator::accumulate gives, to live as long as the batch.
class Accumulation {
 public:
  /// Where nothing is averaged, `ddps` are kept from doing so.
  explicit Accumulation(const std::vector<std::shared_ptr<DdpReplica>>& ddps) {
    for (const auto& ddp : ddps) guards_.emplace_back(ddp);
  }
  Accumulation(const Accumulation&) = delete;
  Accumulation& operator=(const Accumulation&) = delete;

 private:
  std::list<NoSync> guards_ = {};
};

/// What it takes to train on many processes or one with the same program: accelerate's Accelerator in Python.
/// Started by `acc launch`, `torchrun` or alone. All processes call the functions marked "together", in the
/// same order; those throw Error{system} when another process is lost.
class Accelerator : public Checkpointing {
 public:
  /// Together: joins the job that the environment describes, see PartialState. Throws Error{usage} for
  /// options or variables that make no sense, as a tracker that is not known or has no folder, and when
  /// another Accelerator lives that has another precision.
  explicit Accelerator(AcceleratorOptions options = {});

  /// Begins a batch, for as long as the result lives: `const auto batch = accelerator.accumulate(model);` at
  /// the top of the loop. Gradients add up over `gradient_accumulation_steps` batches, or to the loader's
  /// last; until then prepared optimizers and schedulers stand still and the models' gradients are not
  /// averaged.
  template <class... Modules>
  [[nodiscard]] Accumulation accumulate(const Model<Modules>&... models) {
    return begin_batch({models.ddp()...});
  }

  /// While the result lives, backward adds up gradients on this process alone.
  template <class Module>
  [[nodiscard]] NoSync no_sync(const Model<Module>& model) const {
    return model.no_sync();
  }

  /// Together: the next backward averages the gradients that have added up, although its forward ran under
  /// no_sync; for several forwards of which the last backward ends the step. Throws Error{usage}, see
  /// DdpReplica::synchronize_next_backward.
  template <class Module>
  void trigger_sync_in_backward(const Model<Module>& model) const {
    if (model.ddp()) model.ddp()->synchronize_next_backward();
  }

  /// Whether this batch ends with a step of the optimizers.
  bool sync_gradients() const;
  void set_sync_gradients(bool on);
  int gradient_accumulation_steps() const;
  void set_gradient_accumulation_steps(int steps);
  /// Batches that accumulate() has counted since the last end of a loader.
  std::int64_t step() const;

  /// Together: computes gradients of `loss`, divided by the accumulation steps and scaled in fp16, and
  /// averages them over all processes. Throws Error{usage} when gradients reached a prepared model whose
  /// forward did not go through it, and so were not averaged.
  void backward(const at::Tensor& loss);

  /// Together: throws Error{usage} on every process, naming the parameter and the ranks, when a prepared
  /// model's values are not the same on all, bit for bit. AcceleratorOptions::check_parameters_every asks for
  /// it every so many steps.
  void check_parameters() const;

  /// Together: calls `train`, in which processes may train on different numbers of batches; see
  /// acc::join_uneven_inputs. As in accelerate it only calls it where batches are even, so pass
  /// `{.even_batches = false}`, unless the accelerator's own are not.
  void join_uneven_inputs(const std::vector<Joinable>& models, const JoinOptions& options,
                          const std::function<void()>& train);
  void join_uneven_inputs(const std::vector<Joinable>& models, const std::function<void()>& train) {
    join_uneven_inputs(models, {}, train);
  }

  /// In fp16: divides gradients by the scale of the loss, before something looks at them. All optimizers, or
  /// one. Throws Error{usage} while gradients accumulate.
  void unscale_gradients();
  void unscale_gradients(const Optimizer& optimizer);

  /// Unscales, then acc::clip_grad_norm and acc::clip_grad_value. Call them when sync_gradients(). Throw
  /// Error{usage} in fp16 for gradients that no prepared optimizer holds: they would stay scaled.
  at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                             double norm_type = 2);
  void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);

  /// Whether an optimizer's last step was left out because gradients overflowed in fp16.
  bool optimizer_step_was_skipped() const;

  /// The chosen precision for code outside of a prepared model's forward.
  Autocast autocast(AutocastOptions options = {}) const {
    return Autocast(mixed_precision(), device().type(), options);
  }

  /// Together: as gather, without the samples that fill up the last batch of the loader that is being read:
  /// over a whole pass each sample comes exactly once. Vectors of something else than tensors go through
  /// gather_object.
  template <class Input>
  Input gather_for_metrics(const Input& input) const {
    const std::optional<std::size_t> keep = new_samples();
    if constexpr (TensorStructure<Input>) {
      return map_tensors(gather(input), [&](const at::Tensor& all) {
        return keep ? all.slice(0, 0, static_cast<std::int64_t>(*keep)) : all;
      });
    } else {
      Input all = gather_object(input);
      if (keep && *keep < all.size()) all.erase(all.begin() + static_cast<std::ptrdiff_t>(*keep), all.end());
      return all;
    }
  }
  template <std::same_as<at::Tensor>... More>
  requires(sizeof...(More) >
           0) std::array<at::Tensor, 1 + sizeof...(More)> gather_for_metrics(const at::Tensor& tensor,
                                                                             const More&... more)
  const { return {gather_for_metrics(tensor), gather_for_metrics(more)...}; }

  /// Tells the others, when they next check, that something happened here, as that training should end.
  void set_trigger() { triggered_ = true; }
  /// Together: whether any process has set its trigger since the last check that said so.
  bool check_trigger();

  /// Calls `act` under LibTorch's profiler. With an output_trace_dir each process writes
  /// `profile_<rank>.json` there, and all wait until it is done: then together. Throws Error{system} when it
  /// cannot be written.
  template <class Act>
  void profile(const ProfileOptions& options, Act act) const {
    profile_to(trace_file(options), options, device().type(), act);
    if (!options.output_trace_dir.empty()) wait_for_everyone();
  }

  /// The trackers of log_with begin a training: main process only, as the next two; on the others they do
  /// nothing. Throws Error{system} when files cannot be written.
  void init_trackers(const std::string& project, const TrackedConfig& config = {}) {
    trackers_.start(project, config);
  }

  /// Numbers, text and groups of numbers for the trackers: `accelerator.log({{"loss", loss}}, step)`. Throws
  /// Error{usage} before init_trackers, unless there are no trackers.
  void log(const TrackedValues& values, std::optional<std::int64_t> step = {}) {
    trackers_.log(values, step);
  }

  /// One of the trackers; on other processes, and where none were asked for, one that does nothing. Throws
  /// Error{usage} for a name that log_with lacks.
  Tracker& get_tracker(std::string_view name) const { return trackers_.get(name); }

  /// Lets everything go that was prepared, and counts batches from 0 again: between two trainings.
  void free_memory();
  /// accelerate's other name for it.
  void clear() { free_memory(); }

  /// Together: waits for all, closes the trackers and leaves the job; only what this process does alone works
  /// after that, everything marked "together" throws Error{usage}.
  void end_training();

 private:
  void unscale_for_clipping(const std::vector<at::Tensor>& parameters);
  Accumulation begin_batch(const std::vector<std::shared_ptr<DdpReplica>>& ddps);
  // How many rows of what is gathered now are new; nothing: all.
  std::optional<std::size_t> new_samples() const;
  std::filesystem::path trace_file(const ProfileOptions& options) const;

  Trackers trackers_;
  bool triggered_ = false;
};

}  // namespace acc
