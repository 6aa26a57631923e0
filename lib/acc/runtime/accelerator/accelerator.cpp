// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/accelerator/accelerator.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/cuda_plugin.hpp"
#include "acc/runtime/comm/progress.hpp"
#include "acc/runtime/optim/gradients.hpp"
#include "acc/runtime/optim/optimizer.hpp"
#include "acc/runtime/process/stop_request.hpp"
#include "acc/runtime/sharded/sharded_gradients.hpp"

namespace acc {
namespace {

using Loaders = std::vector<std::shared_ptr<LoaderPlan>>;

// Restores the shards of the loaders when it is destroyed.
class ShardRestorer {
 public:
  explicit ShardRestorer(const Loaders& loaders) {
    for (const auto& loader : loaders) shards_.emplace_back(loader, loader->shard());
  }
  ~ShardRestorer() {
    for (const auto& [loader, shard] : shards_) loader->set_shard(shard);
  }
  ShardRestorer(const ShardRestorer&) = delete;
  ShardRestorer& operator=(const ShardRestorer&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<LoaderPlan>, Shard>> shards_ = {};
};

}  // namespace

Accelerator::Accelerator(AcceleratorOptions options)
    : PartialState(options.process_group.timeout, options.cpu, options.process_group.cuda_backend,
                   options.process_group.cpu_backend),
      preparation_(*this, options),
      checkpointing_(*this, preparation_),
      trackers_(options.log_with, logging_dir(), is_main_process()) {}

Accumulation Accelerator::begin_batch(std::vector<std::shared_ptr<detail::DistributedModule>> models) {
  const detail::ActiveLoaders::State* loader = preparation_.active_loaders()->innermost();
  GradientState& gradients = *prepared().gradients;
  gradients.next_batch(loader != nullptr && loader->at_end);
  if (gradients.sync_gradients() || gradients.options().sync_each_batch) models.clear();
  std::erase_if(models, [](const auto& model) { return !model || model->averages_every_batch(); });
  return Accumulation(models);
}

bool Accelerator::sync_gradients() const {
  return prepared().gradients->sync_gradients();
}
void Accelerator::set_sync_gradients(bool on) {
  prepared().gradients->set_sync_gradients(on);
}
int Accelerator::gradient_accumulation_steps() const {
  return prepared().gradients->num_steps();
}
void Accelerator::set_gradient_accumulation_steps(int steps) {
  prepared().gradients->set_num_steps(steps);
}
std::int64_t Accelerator::step() const {
  return prepared().gradients->step();
}

namespace {

// One that is on a GPU is not waited for.
void report_loss(const at::Tensor& loss) {
  if (!loss.defined() || !loss.device().is_cpu() || loss.layout() != at::kStrided || loss.numel() != 1)
    return;
  if (at::isFloatingType(loss.scalar_type())) detail::report_loss(loss.item<double>());
}

void run_backward(const at::Tensor& loss, const BackwardOptions& options) {
  std::optional<at::TensorList> inputs;
  if (!options.inputs.empty()) inputs = options.inputs;
  loss.backward({}, options.retain_graph, options.create_graph, inputs);
}

}  // namespace

void Accelerator::backward(const at::Tensor& loss, const BackwardOptions& options) {
  const ProgressSection section(Section::backward);
  report_loss(loss);
  const int steps = gradient_accumulation_steps();
  at::Tensor scaled = steps == 1 ? loss : loss / steps;
  if (scaler()) scaled = scaler()->scale(scaled);
  if (process_group()) {
    process_group()->with_explained_errors("backward", [&] { run_backward(scaled, options); });
    preparation_.step_checks()->after_backward();
  } else {
    run_backward(scaled, options);
  }
  if (scaler()) scaler()->after_backward();
}

void Accelerator::check_parameters() const {
  if (process_group()) preparation_.step_checks()->require_equal_parameters();
}

void Accelerator::join_uneven_inputs(const std::vector<Joinable>& models, const JoinOptions& options,
                                     const std::function<void()>& train) {
  const bool makes_even = options.even_batches.value_or(even_batches());
  const ShardRestorer restorer(prepared().loaders);
  for (const auto& loader : prepared().loaders) {
    Shard shard = loader->shard();
    shard.even_batches = options.even_batches.value_or(shard.even_batches);
    loader->set_shard(shard);
  }
  acc::join_uneven_inputs(makes_even ? std::vector<Joinable>() : models, train,
                          options.divide_by_initial_world_size);
}

void Accelerator::unscale_gradients() {
  for (const Optimizer& optimizer : prepared().optimizers) unscale_gradients(optimizer);
}

void Accelerator::unscale_gradients(const Optimizer& optimizer) {
  if (!scaler() || scaler()->is_unscaled(optimizer.native())) return;
  if (!sync_gradients()) {
    throw Error(
        {.what = "gradients are still being accumulated: scaled ones cannot be added to unscaled ones",
         .where = "unscale_gradients",
         .hint = "clip and unscale only when sync_gradients() is true"});
  }
  scaler()->unscale(optimizer.native());
}

// The gradients of other optimizers stay scaled: they may be those of another loss that is still to come, as
// in a GAN.
void Accelerator::unscale_for_clipping(const std::vector<at::Tensor>& parameters) {
  if (!scaler()) return;
  std::unordered_set<const c10::TensorImpl*> clipped;
  for (const at::Tensor& parameter : parameters) clipped.insert(parameter.unsafeGetTensorImpl());
  std::unordered_set<const c10::TensorImpl*> unscaled;
  for (const Optimizer& optimizer : prepared().optimizers) {
    std::vector<const c10::TensorImpl*> trained;
    for (const auto& group : optimizer.native().param_groups()) {
      for (const at::Tensor& parameter : group.params()) trained.push_back(parameter.unsafeGetTensorImpl());
    }
    const auto is_clipped = [&](const c10::TensorImpl* one) { return clipped.contains(one); };
    if (std::ranges::none_of(trained, is_clipped)) continue;
    unscale_gradients(optimizer);
    unscaled.insert(trained.begin(), trained.end());
  }
  const auto is_scaled = [&](const at::Tensor& parameter) {
    return parameter.grad().defined() && !unscaled.contains(parameter.unsafeGetTensorImpl());
  };
  if (std::ranges::none_of(parameters, is_scaled)) return;
  throw Error(
      {.what = "some of the parameters do not belong to a prepared optimizer, so their gradients are "
               "still scaled",
       .where = "clipping in fp16",
       .hint = "prepare the optimizer, and clip only its parameters; freeze those that it does not step"});
}

at::Tensor Accelerator::clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                                        double norm_type) {
  detail::require_no_shard_parts(parameters, "clip_grad_norm_");
  unscale_for_clipping(parameters);
  if (!detail::any_is_sharded(parameters)) return clip_grad_norm(parameters, max_norm, norm_type);
  return detail::clip_sharded_grad_norm(parameters, max_norm, norm_type, *process_group());
}

void Accelerator::clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value) {
  unscale_for_clipping(parameters);
  clip_grad_value(parameters, clip_value);
}

bool Accelerator::optimizer_step_was_skipped() const {
  return std::ranges::any_of(prepared().optimizers, &Optimizer::step_was_skipped);
}

std::optional<std::size_t> Accelerator::new_samples() const {
  const detail::ActiveLoaders::State* loader = preparation_.active_loaders()->innermost();
  if (loader == nullptr || !loader->at_end || loader->remainder == 0) return {};
  return loader->remainder;
}

bool Accelerator::check_trigger() {
  const at::Tensor flag = at::full({1}, triggered_ ? 1 : 0, at::kLong);
  if (reduce(flag, ReduceOp::max).item<std::int64_t>() == 0) return false;
  triggered_ = false;
  return true;
}

bool Accelerator::should_stop(std::int64_t every) {
  if (every < 1) throw Error({.what = "must be at least 1", .where = "should_stop, every"});
  detail::note_stop_signals();
  if (stopping_ || stop_checks_++ % every != 0) return stopping_;
  at::Tensor requested = at::full({1}, detail::stop_was_requested() ? 1 : 0, at::kLong);
  if (process_group()) process_group()->all_reduce(requested, ReduceOp::max);
  stopping_ = requested.item<std::int64_t>() != 0;
  return stopping_;
}

std::filesystem::path Accelerator::trace_file(const ProfileOptions& options) const {
  if (options.output_trace_dir.empty()) return {};
  return options.output_trace_dir / fmt::format("profile_{}.json", process_index());
}

std::ranges::iota_view<std::uint64_t, std::uint64_t> Accelerator::epochs(std::uint64_t num_epochs) const {
  if (prepared().loaders.empty())
    throw Error({.what = "no loader was prepared, whose passes could be counted", .where = "epochs"});
  return epochs_from(prepared().loaders.front()->epoch(), num_epochs);
}

std::ranges::iota_view<std::uint64_t, std::uint64_t> Accelerator::epochs_from(std::uint64_t first,
                                                                              std::uint64_t num_epochs) {
  return {std::min(first, num_epochs), num_epochs};
}

void Accelerator::free_memory() {
  preparation_.release();
  checkpointing_.free_memory();
  prepared().gradients->set_step(0);
  if (device().is_cuda()) detail::cuda_table().empty_cache();
}

void Accelerator::end_training() {
  if (has_left()) return;
  wait_for_save();
  wait_for_everyone();
  trackers_.finish();
  free_memory();
  leave();
}

}  // namespace acc
