// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/accelerator/preparation.hpp"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <ranges>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/accelerator/settings_agreement.hpp"
#include "acc/runtime/optim/accelerated_scheduler.hpp"
#include "acc/runtime/optim/optimizer.hpp"
#include "acc/runtime/optim/sparse_gradients.hpp"
#include "acc/runtime/sharded/sharded_gradients.hpp"
#include "acc/runtime/sharded/sharded_module.hpp"
#include "acc/runtime/sharded/sharded_optimizer.hpp"
#include "acc/runtime/tensors/memory.hpp"
#include "acc/runtime/tensors/nested_tensors.hpp"

namespace acc::detail {
namespace {

constexpr std::string_view kPrecisionVariable = "ACCELERATE_MIXED_PRECISION";
constexpr std::string_view kAccumulationVariable = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS";

MixedPrecision chosen_precision(const AcceleratorOptions& options, const Environment& environment) {
  if (options.mixed_precision) return *options.mixed_precision;
  return parse_mixed_precision(environment.get(kPrecisionVariable, "no"), kPrecisionVariable);
}

int accumulation_steps(const AcceleratorOptions& options, const Environment& environment) {
  const auto text = environment.find(kAccumulationVariable);
  if (!text) return options.gradient_accumulation_steps;
  const auto steps = parse_integer(*text);
  if (!steps || *steps < 1 || *steps > std::numeric_limits<int>::max()) {
    throw Error({.what = fmt::format("must be a whole number of at least 1, not '{}'", *text),
                 .where = std::string(kAccumulationVariable)});
  }
  return static_cast<int>(*steps);
}

void require_project(const ProjectOptions& project) {
  if (project.total_limit && *project.total_limit < 1) {
    throw Error({.what = fmt::format("must be at least 1, not {}", *project.total_limit),
                 .where = "total_limit",
                 .hint = "leave it out to keep all checkpoints"});
  }
}

// The precision of all existing Accelerators, which must be the same.
std::shared_ptr<const MixedPrecision> share_precision(MixedPrecision precision) {
  static std::weak_ptr<const MixedPrecision> shared;
  auto living = shared.lock();
  if (!living) {
    living = std::make_shared<const MixedPrecision>(precision);
    shared = living;
  }
  if (*living == precision) return living;
  throw Error({.what = fmt::format("another Accelerator of this program uses {}, this one {}",
                                   to_string(*living), to_string(precision)),
               .where = "mixed_precision",
               .hint = "destroy the other one first, or use the same precision for both"});
}

// A parameter that is listed twice, as a tied weight, would be updated twice in each step.
bool remove_repeated_parameters(torch::optim::Optimizer& optimizer) {
  bool removed = false;
  for (auto& group : optimizer.param_groups()) {
    const std::size_t before = group.params().size();
    keep_distinct(group.params());
    removed = removed || group.params().size() < before;
  }
  return removed;
}

// LibTorch's Reducer takes a gradient that is a view of another's bucket for an error of the program, and in
// a static graph it counts the gradients that the other model averages. Sparse gradients it averages where
// they are, not in a bucket.
void require_shared_parameters_averaged(const DdpReplica& replica, const std::vector<PreparedModel>& others,
                                        const DdpOptions& options) {
  const bool refuses_all = options.static_graph || options.gradient_as_bucket_view;
  const std::string_view option = options.static_graph ? "static_graph" : "gradient_as_bucket_view";
  for (const PreparedModel& other : others) {
    if (!other.ddp) continue;
    replica.require_no_sparse_gradients_shared_with(*other.ddp);
    if (refuses_all) replica.require_apart_from(*other.ddp, option);
  }
}

std::shared_ptr<StepChecks> new_checks(const AcceleratorOptions& options) {
  if (options.check_parameters_every < 0) {
    throw Error({.what = fmt::format("must be at least 0, not {}", options.check_parameters_every),
                 .where = "check_parameters_every"});
  }
  return std::make_shared<StepChecks>(
      StepCheckOptions{.allow_unprepared_parameters = options.allow_unprepared_parameters,
                       .check_parameters_every = options.check_parameters_every});
}

}  // namespace

struct Preparation::Impl {
  AcceleratorOptions options = {};
  std::shared_ptr<const MixedPrecision> precision = {};
  std::shared_ptr<ActiveLoaders> active = std::make_shared<ActiveLoaders>();
  Prepared prepared = {};
  // Null if there is one process.
  std::shared_ptr<StepChecks> checks = {};
  // Maps the addresses from which optimizers were moved, to which schedulers still point, to the present
  // ones; the latest last.
  std::vector<std::pair<const torch::optim::Optimizer*, torch::optim::Optimizer*>> moved = {};
  at::Device device = at::kCPU;

  ShardedModuleOptions sharding() const {
    return {.fsdp = *options.fsdp,
            .compute = *precision == MixedPrecision::bf16 ? at::kBFloat16 : at::kFloat,
            .device = options.device_placement ? device : at::Device(at::kCPU),
            .broadcast_buffers = options.ddp.broadcast_buffers};
  }
};

Preparation::Preparation(const PartialState& state, AcceleratorOptions options)
    : state_(state), impl_(std::make_unique<Impl>()) {
  const Environment environment = Environment::of_process();
  if (may_keep_freed_memory(environment)) keep_freed_memory();
  require_project(options.project);
  impl_->precision = share_precision(chosen_precision(options, environment));
  impl_->prepared.gradients = std::make_shared<GradientState>(accumulation_steps(options, environment),
                                                              options.gradient_accumulation);
  if (mixed_precision() == MixedPrecision::fp16 && options.grad_scaler.enabled) {
    impl_->prepared.scaler = std::make_shared<GradScaler>(options.grad_scaler);
  }
  if (!options.fsdp) options.fsdp = fsdp_options_of(environment);
  if (options.fsdp) require_valid(*options.fsdp);
  if (!options.activation_checkpointing && fsdp_computes_activations_again(environment))
    options.activation_checkpointing = true;
  if (state_.process_group()) {
    impl_->checks = new_checks(options);
    if (options.fsdp && options.ddp.comm_hook != CommHook::none) {
      throw Error({.what = "communication hooks are not there for sharded models",
                   .where = "ddp.comm_hook",
                   .hint = "leave it out, or train without fsdp (--use_fsdp)"});
    }
    if (options.fsdp && mixed_precision() == MixedPrecision::fp16) {
      throw Error({.what = "fp16 is not there for sharded models",
                   .where = "mixed_precision",
                   .hint = "use bf16, or train without fsdp (--use_fsdp)"});
    }
  }
  impl_->device = state_.device();
  if (options.project.logging_dir.empty()) options.project.logging_dir = options.project_dir;
  impl_->options = std::move(options);
}

Preparation::~Preparation() = default;

MixedPrecision Preparation::mixed_precision() const {
  return *impl_->precision;
}
AcceleratorOptions& Preparation::options() {
  return impl_->options;
}
const AcceleratorOptions& Preparation::options() const {
  return impl_->options;
}
bool Preparation::saves_shards() const {
  return impl_->options.fsdp && impl_->options.fsdp->state_dict_type == StateDictType::sharded;
}
Prepared& Preparation::prepared() {
  return impl_->prepared;
}
const Prepared& Preparation::prepared() const {
  return impl_->prepared;
}
const std::shared_ptr<ActiveLoaders>& Preparation::active_loaders() const {
  return impl_->active;
}
const std::shared_ptr<StepChecks>& Preparation::step_checks() const {
  return impl_->checks;
}

std::shared_ptr<DistributedModule> Preparation::add_model(std::shared_ptr<torch::nn::Module> module,
                                                          const ModelOptions& options) {
  PreparedModel model{.module = std::move(module)};
  if (any_is_sharded(model.module->parameters())) {
    throw Error({.what = "is sharded already, or has parameters of a model that is",
                 .where = model.module->name(),
                 .hint = "prepare it once, and pass the prepared model; of two models that share parameters, "
                         "prepare one module that contains both"});
  }
  const bool trains_together = state_.process_group() && !options.evaluation_mode;
  if (trains_together) {
    require_same_settings(
        shared_settings(impl_->options, mixed_precision(), impl_->prepared.gradients->num_steps()),
        *state_.process_group());
  }
  std::shared_ptr<DistributedModule> distributed;
  if (trains_together && impl_->options.fsdp) {
    model.sharded = std::make_shared<ShardedModule>(model.module, state_.process_group(), impl_->sharding());
    distributed = model.sharded;
  } else {
    if (impl_->options.device_placement) model.module->to(state_.device());
    if (trains_together)
      model.ddp = std::make_shared<DdpReplica>(model.module, state_.process_group(), impl_->options.ddp);
    if (model.ddp) require_shared_parameters_averaged(*model.ddp, impl_->prepared.models, impl_->options.ddp);
    distributed = model.ddp;
  }
  for (const Optimizer& optimizer : impl_->prepared.optimizers)
    require_sparse_gradients_taken(optimizer.native(), *model.module);
  if (distributed) impl_->checks->add_model(distributed);
  impl_->prepared.models.push_back(model);
  // Optimizers may be prepared before their model.
  for (std::size_t i = 0; model.sharded && i < impl_->prepared.optimizers.size(); ++i) {
    torch::optim::Optimizer& native = impl_->prepared.optimizers[i].native();
    if (!has_parameters_of(native, *model.sharded)) continue;
    auto& slot = impl_->prepared.sharded_optimizers[i];
    if (slot) {
      throw Error({.what = "an optimizer has parameters of several models, and was prepared before the last",
                   .where = "prepare",
                   .hint = "prepare the models first, then their optimizer"});
    }
    slot = sharded_optimizer(native);
  }
  return distributed;
}

std::shared_ptr<ShardedOptimizer> Preparation::sharded_optimizer(torch::optim::Optimizer& native) const {
  if (!has_sharded_parameters(native)) return nullptr;
  std::vector<std::shared_ptr<ShardedModule>> modules;
  for (const PreparedModel& model : impl_->prepared.models)
    if (model.sharded) modules.push_back(model.sharded);
  return std::make_shared<ShardedOptimizer>(native, modules);
}

std::shared_ptr<ShardedModule> Preparation::sharded_module(const torch::nn::Module& module) const {
  for (const PreparedModel& model : impl_->prepared.models)
    if (model.module.get() == &module) return model.sharded;
  return nullptr;
}

Optimizer Preparation::add_optimizer(std::shared_ptr<torch::optim::Optimizer> native,
                                     const torch::optim::Optimizer* from) {
  if (remove_repeated_parameters(*native) && state_.is_main_process()) {
    TORCH_WARN_ONCE(
        "an optimizer was given some parameters twice, as those of a module that is registered twice or is "
        "part of two models; it updates each of them once");
  }
  if (impl_->options.device_placement) move_optimizer_state(*native, state_.device());
  if (from != nullptr) impl_->moved.emplace_back(from, native.get());
  for (const PreparedModel& model : impl_->prepared.models)
    require_sparse_gradients_taken(*native, *model.module);
  impl_->prepared.sharded_optimizers.push_back(sharded_optimizer(*native));
  return impl_->prepared.optimizers.emplace_back(std::move(native), impl_->prepared.gradients,
                                                 impl_->prepared.scaler, impl_->checks);
}

std::shared_ptr<LoaderPlan> Preparation::add_loader(const LoaderPlan& plan, bool iterable,
                                                    const LoaderOptions& options) {
  auto shared = std::make_shared<LoaderPlan>(plan);
  // Uses rank 0's seed: processes that were seeded differently must agree on the order of samples.
  at::Tensor seed = at::zeros({1}, at::kLong);
  *seed.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(shared->seed());
  seed = state_.broadcast(seed);
  shared->set_seed(static_cast<std::uint64_t>(*seed.const_data_ptr<std::int64_t>()));
  shared->set_shard({.index = static_cast<std::size_t>(state_.process_index()),
                     .count = static_cast<std::size_t>(state_.num_processes()),
                     .even_batches = impl_->options.even_batches,
                     .split_batches = impl_->options.split_batches});
  shared->set_dispatched(state_.distributed() && impl_->options.dispatch_batches.value_or(iterable));
  if (!options.evaluation_mode) impl_->prepared.loaders.push_back(shared);
  return shared;
}

LoaderContext Preparation::loader_context() const {
  LoaderContext context{.active = impl_->active};
  if (impl_->options.device_placement) context.device = state_.device();
  if (!state_.process_group()) return context;
  context.broadcast = [group = state_.process_group()](at::Tensor& tensor) { group->broadcast(tensor, 0); };
  context.before_pass = [types = impl_->options.rng_types, broadcast = context.broadcast] {
    synchronize_rng_states(types, broadcast);
  };
  return context;
}

void Preparation::release() {
  impl_->prepared.models.clear();
  if (impl_->checks) {
    impl_->checks->release();
    impl_->checks = new_checks(impl_->options);
  }
  impl_->prepared.optimizers.clear();
  impl_->prepared.sharded_optimizers.clear();
  impl_->prepared.schedulers.clear();
  impl_->prepared.loaders.clear();
  impl_->moved.clear();
}

bool Preparation::is_prepared(const LoaderPlan& plan) const {
  return std::ranges::any_of(impl_->prepared.loaders, [&](const auto& one) { return one.get() == &plan; });
}

void Preparation::add_scheduler(const std::shared_ptr<torch::optim::LRScheduler>& scheduler) {
  require_optimizer(*scheduler);
  impl_->prepared.schedulers.push_back(
      {.state = [scheduler] { return scheduler_state(*scheduler); },
       .load_state = [scheduler](std::string_view state) { load_scheduler_state(*scheduler, state); }});
}

torch::optim::Optimizer& Preparation::moved_optimizer(torch::optim::Optimizer& optimizer) const {
  for (const auto& [from, native] : std::views::reverse(impl_->moved)) {
    if (from == &optimizer) return *native;
  }
  return optimizer;
}

SchedulerRule Preparation::scheduler_rule(const torch::optim::Optimizer* optimizer) const {
  SchedulerRule rule{.gradients = impl_->prepared.gradients,
                     .optimizers = impl_->prepared.optimizers,
                     .step_with_optimizer = impl_->options.step_scheduler_with_optimizer,
                     .steps = impl_->options.split_batches ? 1 : state_.num_processes()};
  const auto is_its = [&](const Optimizer& one) { return &one.native() == optimizer; };
  if (std::ranges::any_of(rule.optimizers, is_its)) std::erase_if(rule.optimizers, std::not_fn(is_its));
  return rule;
}

}  // namespace acc::detail
