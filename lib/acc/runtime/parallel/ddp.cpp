// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/ddp.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_set>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/explain_failure.hpp"
#include "acc/runtime/parallel/gradient_hooks.hpp"
#include "acc/runtime/parallel/joined_step.hpp"
#include "acc/runtime/parallel/parameter_agreement.hpp"
#include "acc/runtime/parallel/reducer.hpp"
#include "acc/runtime/parallel/sync_batch_norm.hpp"
#include "acc/runtime/recomputation/saved_tensor_hooks.hpp"

namespace acc::detail {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

std::vector<at::Tensor> values_of(const std::vector<at::Tensor*>& pointers) {
  std::vector<at::Tensor> values;
  std::ranges::transform(pointers, std::back_inserter(values),
                         [](const at::Tensor* pointer) { return *pointer; });
  return values;
}

struct Parameter {
  std::string name = {};
  at::Tensor tensor = {};
  bool has_sparse_gradient = false;
  // Whether the reducer averages its gradients, and as what it knows the parameter.
  bool reduced = false;
  at::ScalarType type = at::kFloat;
  at::Device device = at::kCPU;
  std::vector<std::int64_t> strides = {};

  // The reducer copies gradients in the order that the memory had when it was made.
  bool has_other_strides() const { return reduced && !tensor.strides().equals(strides); }
};

// What LibTorch cannot do with sparse gradients, in one line before the first of them.
void require_options_for_sparse(const std::string& name, const at::Tensor& parameter,
                                const DdpOptions& options) {
  const bool is_cpu = parameter.device().is_cpu();
  if (is_cpu && parameter.scalar_type() == at::kHalf) {
    throw Error({.what = "has sparse gradients of Half, which LibTorch cannot add",
                 .where = fmt::format("parameter '{}'", name),
                 .hint = "make the embedding of float or bfloat16, or without sparse(true)"});
  }
  if (is_cpu && options.comm_hook == CommHook::none) return;
  throw Error({.what = is_cpu ? "has sparse gradients, which comm_hook cannot compress"
                              : "has sparse gradients, which are averaged on CPUs alone",
               .where = fmt::format("parameter '{}'", name),
               .hint = fmt::format("make the embedding without sparse(true){}",
                                   is_cpu ? ", or leave out comm_hook" : "")});
}

// Whether the present backward is torch::autograd::grad, which leaves the gradients of parameters alone.
bool returns_gradients() {
  const auto* nodes = torch::autograd::get_current_graph_task_exec_info();
  return nodes != nullptr &&
         std::ranges::any_of(*nodes, [](const auto& node) { return node.second.captures_ != nullptr; });
}

}  // namespace

struct DdpReplica::Impl {
  std::shared_ptr<torch::nn::Module> module = {};
  std::shared_ptr<ProcessGroup> group = {};
  Group native = {};
  DdpOptions options = {};
  std::optional<KnownParameters> known_parameters = {};
  std::vector<Parameter> parameters = {};
  std::unordered_set<const c10::TensorImpl*> parameter_tensors = {};
  std::shared_ptr<GradientReducer> reducer = {};
  std::unique_ptr<GradientWatch> watch = {};
  at::Device device = at::kCPU;
  bool synchronizes = true;
  // Whether the current forward has parameters to train.
  bool trains = true;
  // Whether buffers may have changed since the last broadcast: after a forward that trains.
  bool buffers_due = true;
  // In a static graph, the first backward averages all gradients at its end.
  bool reduces_late = false;
  std::shared_ptr<JoinedStep> join = {};

  at::Tensor flag(bool on) const { return at::full({1}, on ? 1.0 : 0.0, at::TensorOptions(device)); }

  std::vector<at::Tensor> tensors() const {
    std::vector<at::Tensor> result;
    for (const Parameter& parameter : parameters) result.push_back(parameter.tensor);
    return result;
  }

  std::vector<at::Tensor> reduced_tensors() const {
    std::vector<at::Tensor> reduced;
    for (const Parameter& parameter : parameters) {
      if (parameter.reduced) reduced.push_back(parameter.tensor);
    }
    return reduced;
  }

  std::vector<bool> reduced_sparse() const {
    std::vector<bool> sparse;
    for (const Parameter& parameter : parameters) {
      if (parameter.reduced) sparse.push_back(parameter.has_sparse_gradient);
    }
    return sparse;
  }

  std::vector<std::string> reduced_names() const {
    std::vector<std::string> names;
    for (const Parameter& parameter : parameters) {
      if (parameter.reduced) names.push_back(parameter.name);
    }
    return names;
  }

  bool is_trainable() const {
    return std::ranges::any_of(parameters, [](const Parameter& one) { return one.tensor.requires_grad(); });
  }

  void make_new_reducer() {
    watch.reset();
    reducer.reset();
    for (Parameter& parameter : parameters) {
      parameter.reduced = parameter.tensor.requires_grad();
      parameter.type = parameter.tensor.scalar_type();
      parameter.device = parameter.tensor.device();
      parameter.strides = parameter.tensor.strides().vec();
    }
    // Before the reducer, whose error about another layout names no parameter.
    watch = std::make_unique<GradientWatch>(
        reduced_tensors(), [this] { return reducer->averages(); },
        [this, tensors = reduced_tensors(), sparse = reduced_sparse()](std::size_t index, bool again) {
          if (again && !options.static_graph) refuse_second_gradient(index);
          if (tensors[index].grad().requires_grad()) refuse_graph(index);
          if (tensors[index].grad().is_sparse() != sparse[index]) refuse_layout(index, sparse[index]);
        });
    reducer = make_reducer(reduced_tensors(), reduced_sparse(), native, options);
    watch->set_active(synchronizes);
    reduces_late = options.static_graph;
  }

  // Where the parameter stands in errors of this process.
  std::string where(std::size_t index) const {
    return fmt::format("rank {}, parameter '{}'", group->rank(), reduced_names()[index]);
  }

  [[noreturn]] void refuse_second_gradient(std::size_t index) const {
    throw Error({.what =
                     "got a second gradient while other parameters of the model wait for their first, so it "
                     "cannot be averaged with them",
                 .where = where(index),
                 .hint = "call backward once, of the sum of the losses; or forward and backward of one loss "
                         "before the forward of the next"});
  }

  [[noreturn]] void refuse_graph(std::size_t index) const {
    throw Error(
        {.what = "got a gradient with a graph of its own (create_graph), which averaging would cut off",
         .where = where(index),
         .hint = "take gradients that are part of a loss by torch::autograd::grad, and call backward of "
                 "that loss; or call both under no_sync"});
  }

  // The Reducer makes zeros for an unused parameter, but has none of a sparse layout.
  void require_use_of_sparse() const {
    if (reducer->unused().empty()) return;
    const std::vector<bool> sparse = reduced_sparse();
    const auto unused =
        std::ranges::find_if(reducer->unused(), [&](std::size_t index) { return sparse[index]; });
    if (unused != reducer->unused().end()) refuse_unused_sparse(*unused);
  }

  [[noreturn]] void refuse_unused_sparse(std::size_t index) const {
    throw Error(
        {.what = "has sparse gradients, and the output does not depend on it: such a parameter has no "
                 "zeros to average",
         .where = where(index),
         .hint = "make the embedding without sparse(true), or look up some of its rows in each forward"});
  }

  // In a static graph the Reducer learns in the first backward what is unused.
  void require_sparse_gradients() const {
    const std::vector<at::Tensor> tensors = reduced_tensors();
    const std::vector<bool> sparse = reduced_sparse();
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (sparse[i] && !tensors[i].grad().defined()) refuse_unused_sparse(i);
  }

  // Calls `function`, whose error about parameters without gradients gets their names.
  void with_unused_parameters_named(const std::function<void()>& function) const {
    try {
      function();
    } catch (const c10::Error& error) {
      const std::string origin = fmt::format("rank {}, {}", group->rank(), module->name());
      const auto explained =
          explain_unused_parameters(error.what_without_backtrace(), reduced_names(), origin);
      if (explained) throw Error(*explained);
      throw;
    }
  }

  // The number of a parameter among those whose gradients are averaged.
  std::optional<std::size_t> reduced_index(const at::Tensor& tensor) const {
    std::size_t index = 0;
    for (const Parameter& parameter : parameters) {
      if (!parameter.reduced) continue;
      if (parameter.tensor.is_same(tensor)) return index;
      ++index;
    }
    return std::nullopt;
  }

  [[noreturn]] void refuse_layout(std::size_t index, bool expects_sparse) const {
    throw Error(
        {.what = expects_sparse
                     ? "got a dense gradient, and the processes average those of its embedding as sparse ones"
                     : "got a sparse gradient, and the processes average those of layers Embedding and "
                       "EmbeddingBag alone",
         .where = where(index),
         .hint = expects_sparse ? "make the embedding without sparse(true), or use its weight nowhere else"
                                : "make it by such a layer with sparse(true), or without sparse"});
  }

  void require_no_sparse_gradients(std::string_view function) const {
    const auto sparse = std::ranges::find_if(parameters, [](const Parameter& parameter) {
      return parameter.reduced && parameter.has_sparse_gradient;
    });
    if (sparse == parameters.end()) return;
    throw Error({.what = fmt::format("has sparse gradients, which {} cannot average", function),
                 .where = fmt::format("parameter '{}'", sparse->name),
                 .hint = "make the embedding without sparse(true)"});
  }

  // What happened to parameters since the reducer was made, by their names.
  std::map<std::string, std::string> changes() const {
    std::map<std::string, std::string> changes;
    std::size_t watched = 0;
    for (const Parameter& parameter : parameters) {
      const bool detached = parameter.reduced && watch->is_detached(watched++);
      if (parameter.reduced && parameter.tensor.scalar_type() != parameter.type) {
        changes[parameter.name] = fmt::format("converted from {} to {}", c10::toString(parameter.type),
                                              c10::toString(parameter.tensor.scalar_type()));
      } else if (parameter.reduced && parameter.tensor.device() != parameter.device) {
        changes[parameter.name] =
            fmt::format("moved from {} to {}", parameter.device.str(), parameter.tensor.device().str());
      } else if (parameter.tensor.requires_grad() != parameter.reduced) {
        changes[parameter.name] = parameter.reduced ? "frozen" : "unfrozen";
      } else if (parameter.has_other_strides()) {
        changes[parameter.name] = "given another memory format";
      } else if (detached) {
        changes[parameter.name] = "replaced";
      }
    }
    return changes;
  }

  // Throws on all processes, also if one alone has another parameter.
  void require_known_parameters() const {
    const std::string name = known_parameters->exchanged();
    if (name.empty()) return;
    std::map<std::string, std::string> changed = changes();
    changed[name] = "exchanged for another";
    if (!join) require_same_changes(changed);
    known_parameters->require();
  }

  // Makes a new reducer if parameters were frozen or unfrozen, have another memory format, or have new memory
  // to which the old one is not attached, as after a conversion and back. Throws on all processes if they
  // differ in that, and if parameters are of another type or on another device now, which the optimizer's
  // state does not fit.
  void take_up_changes() {
    const auto unchanged = [](const Parameter& parameter) {
      return parameter.tensor.requires_grad() == parameter.reduced;
    };
    const bool same_trained = std::ranges::all_of(parameters, unchanged);
    const bool same_strides = std::ranges::none_of(parameters, &Parameter::has_other_strides);
    if (same_trained && same_strides && !watch->any_is_detached()) return;
    const std::map<std::string, std::string> changed = changes();
    if (join) {
      throw Error({.what =
                       "parameters were frozen, unfrozen or replaced, which processes without data do not "
                       "notice",
                   .where = "join_uneven_inputs",
                   .hint = "change parameters outside of join_uneven_inputs"});
    }
    const auto refused = std::ranges::find_if(parameters, [](const Parameter& parameter) {
      return parameter.reduced && (parameter.tensor.scalar_type() != parameter.type ||
                                   parameter.tensor.device() != parameter.device);
    });
    if (refused == parameters.end()) reducer->rebuild_buckets();  // throws if the step before is unfinished
    require_same_changes(changed);
    if (refused != parameters.end()) {
      throw Error({.what = fmt::format("was {} after the model was prepared, and the optimizer's state does "
                                       "not fit it any longer",
                                       changed.at(refused->name)),
                   .where = fmt::format("parameter '{}'", refused->name),
                   .hint = "convert and move a model before prepare"});
    }
    const BucketLayout layout = same_trained ? reducer->layout() : BucketLayout();
    make_new_reducer();
    if (!layout.empty()) reducer->set_layout(layout);
  }

  // A process that has nothing to compare does not come: `doing` tells it what this one does.
  void require_same_changes(const std::map<std::string, std::string>& changed) const {
    std::vector<ParameterInfo> infos = describe_parameters(*module);
    for (ParameterInfo& info : infos) {
      const auto change = changed.find(info.name);
      if (change != changed.end()) info.form += fmt::format(" ({} after prepare)", change->second);
    }
    const auto& [name, change] = *changed.begin();
    const std::string doing = fmt::format("comparison of parameters, since '{}' was {}", name, change);
    acc::detail::require_same_parameters(infos, *group, doing);
  }

  // The highest rank for which `may_be_this` is true; the same on every process.
  int agree_on_rank(bool may_be_this) const {
    at::Tensor rank =
        at::full({1}, may_be_this ? group->rank() : -1, at::TensorOptions(device).dtype(at::kLong));
    group->all_reduce(rank, ReduceOp::max);
    return static_cast<int>(rank.item<std::int64_t>());
  }

  void broadcast_state(int from) const {
    std::vector<at::Tensor> state = tensors();
    if (options.broadcast_buffers) std::ranges::copy(module->buffers(), std::back_inserter(state));
    std::ranges::transform(state, state.begin(), [](const at::Tensor& tensor) { return tensor.detach(); });
    group->broadcast(state, from);
  }

  // Within join_uneven_inputs rank 0 may have run out of data and have outdated buffers: another rank
  // broadcasts then.
  void broadcast_buffers(bool has_data) const {
    const std::vector<at::Tensor> buffers = module->buffers();
    if (!buffers_due || !options.broadcast_buffers || buffers.empty()) return;
    group->broadcast(buffers, join ? agree_on_rank(has_data) : 0);
  }

  void tell_that_a_step_begins(const DdpReplica* self) const {
    if (join->first == self) {
      std::vector<at::Tensor> one{flag(true)};
      join->begins = native->allreduce(one);
    }
    reducer->set_forward_pass_work_handle(join->begins, join->divide_by_initial_world_size);
  }

  void prepare(const DdpReplica* self) {
    trains = at::GradMode::is_enabled() && is_trainable();
    if (trains && !synchronizes && options.static_graph) {
      throw Error({.what = "static_graph needs a backward that averages gradients after each forward",
                   .where = "no_sync, accumulate",
                   .hint = "leave out static_graph, or set gradient_accumulation.sync_each_batch"});
    }
    if (trains && synchronizes) {
      require_known_parameters();
      take_up_changes();
      reducer->prepare_for_forward();
    }
    if (join) tell_that_a_step_begins(self);
    if (trains) reducer->rebuild_buckets();
    broadcast_buffers(/*has_data=*/true);
    if (join) {
      tell_what_follows({.averages = trains && synchronizes,
                         .changes_buffers = at::GradMode::is_enabled() && synchronizes});
    }
  }

  // What a process does in a joined step once its forward has begun.
  struct Following {
    bool averages = false;
    bool changes_buffers = false;
  };
  // How many processes do each of the two.
  at::Tensor tell_what_follows(const Following& own) const {
    at::Tensor numbers = at::cat({flag(own.averages), flag(own.changes_buffers)});
    group->all_reduce(numbers, ReduceOp::sum);
    return numbers;
  }

  static void start_late_reduction(const std::shared_ptr<Impl>& impl) {
    if (!impl->reduces_late || returns_gradients()) return;
    impl->reduces_late = false;
    torch::autograd::Engine::get_default_engine().queue_callback([impl] {
      impl->require_sparse_gradients();
      impl->reducer->delay_all_reduce();
    });
  }

  // Outputs without a graph are left unchanged.
  static void sink(const std::shared_ptr<Impl>& impl, std::vector<at::Tensor*> outputs) {
    std::erase_if(outputs, [](const at::Tensor* output) { return output->is_leaf(); });
    if (outputs.empty()) return;
    const auto on_backward = [weak = std::weak_ptr(impl)] {
      if (const auto alive = weak.lock()) start_late_reduction(alive);
    };
    const std::vector<at::Tensor> copies = pass_through_sink(values_of(outputs), on_backward);
    for (std::size_t i = 0; i < outputs.size(); ++i) *outputs[i] = copies[i];
  }

  void reduce_zeros() const {
    std::vector<c10::intrusive_ptr<c10::ivalue::Future>> sums;
    for (c10d::GradBucket& bucket : reducer->get_grad_buckets(/*return_zero_tensors=*/true))
      sums.push_back(reducer->run_comm_hook(bucket));
    for (const auto& sum : sums) sum->waitAndThrow();
    if (options.find_unused_parameters) {
      std::vector<at::Tensor> used{reducer->get_local_used_map_on_device()};
      native->allreduce(used)->wait();
    }
    reducer->push_rebuilt_params_for_all_indices();
  }

  void shadow_step() {
    reducer->rebuild_buckets();
    broadcast_buffers(/*has_data=*/false);
    const at::Tensor numbers = tell_what_follows({}).cpu();
    buffers_due = numbers[1].item<double>() != 0;
    if (numbers[0].item<double>() != 0) reduce_zeros();
  }
};

DdpReplica::DdpReplica(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group,
                       DdpOptions options)
    : impl_(std::make_shared<Impl>()) {
  if (module == nullptr || group == nullptr) {
    throw Error(
        {.what = module == nullptr ? "has no module" : "has no process group: a process alone has none",
         .where = "Ddp",
         .hint = "Accelerator::prepare works for one process and for several"});
  }
  impl_->module = std::move(module);
  impl_->group = std::move(group);
  impl_->native = Group::reclaim_copy(&impl_->group->native());
  impl_->options = options;
  require_own_memory("parameter", impl_->module->named_parameters());
  if (options.broadcast_buffers) require_own_memory("buffer", impl_->module->named_buffers());
  require_same_parameters(*impl_->module, *impl_->group);
  impl_->known_parameters.emplace(impl_->module, KnownParameters::Scope::trained);
  const auto sparse = sparse_parameters(*impl_->module);
  for (const auto& [name, tensor] : distinct_parameters(*impl_->module)) {
    const bool has_sparse_gradient = sparse.contains(tensor.unsafeGetTensorImpl());
    if (has_sparse_gradient) require_options_for_sparse(name, tensor, options);
    impl_->parameters.push_back({.name = name, .tensor = tensor, .has_sparse_gradient = has_sparse_gradient});
    impl_->parameter_tensors.insert(tensor.unsafeGetTensorImpl());
  }
  if (!impl_->is_trainable()) {
    throw Error({.what = "no parameter needs a gradient",
                 .where = impl_->module->name(),
                 .hint = "use a model that is not trained without preparing it"});
  }
  impl_->device = impl_->parameters.front().tensor.device();
  impl_->broadcast_state(/*from=*/0);
  use_group_in_sync_batch_norms(*impl_->module, impl_->group);
  impl_->make_new_reducer();
}

DdpReplica::~DdpReplica() = default;

void DdpReplica::before_forward() {
  impl_->group->with_explained_errors(
      "forward", [&] { impl_->with_unused_parameters_named([&] { impl_->prepare(this); }); });
}

void DdpReplica::after_forward(const std::vector<at::Tensor*>& outputs) {
  const bool finds_unused = impl_->options.find_unused_parameters && !impl_->options.static_graph;
  impl_->buffers_due = at::GradMode::is_enabled() && impl_->synchronizes;
  if (!impl_->trains) return;
  // While an earlier forward awaits its backward, the Reducer takes the next gradients for that one's.
  if (!impl_->synchronizes && !impl_->reducer->averages()) impl_->watch->expect_local();
  if (impl_->synchronizes && (finds_unused || impl_->reduces_late) && outputs.empty()) {
    throw Error({.what = fmt::format("{} finds no tensor in the output of forward",
                                     finds_unused ? "find_unused_parameters" : "static_graph"),
                 .where = impl_->module->name(),
                 .hint = "return tensors, or tuples, vectors or maps of them, or declare for_each_tensor "
                         "for the type"});
  }
  if (impl_->synchronizes) {
    impl_->reducer->prepare_for_backward(finds_unused ? values_of(outputs) : std::vector<at::Tensor>{});
    impl_->watch->expect_averaged();
    impl_->require_use_of_sparse();
  }
  if (finds_unused || impl_->reduces_late) Impl::sink(impl_, outputs);
}

bool DdpReplica::synchronizes() const {
  return impl_->synchronizes;
}
void DdpReplica::set_synchronizes(bool on) {
  impl_->synchronizes = on;
  impl_->watch->set_active(on);
}
void DdpReplica::synchronize_next_backward() {
  const DdpOptions& options = impl_->options;
  if (options.find_unused_parameters || options.static_graph || impl_->join) {
    throw Error({.what = fmt::format("{} requires forward to know that backward averages gradients",
                                     impl_->join                      ? "join_uneven_inputs"
                                     : options.find_unused_parameters ? "find_unused_parameters"
                                                                      : "static_graph"),
                 .where = "trigger_sync_in_backward",
                 .hint = "call the last forward outside of no_sync instead"});
  }
  impl_->group->with_explained_errors("trigger_sync_in_backward", [&] { impl_->take_up_changes(); });
  impl_->reducer->prepare_for_backward({});
  impl_->watch->expect_averaged();
}
void DdpReplica::after_backward(const std::vector<std::shared_ptr<DistributedModule>>& models) {
  const std::vector<std::size_t> unexpected = impl_->watch->take_unexpected();
  if (unexpected.empty()) return;
  const auto is_averaged_by_another = [&, parameters = impl_->reduced_tensors()](std::size_t index) {
    return std::ranges::any_of(models, [&](const std::shared_ptr<DistributedModule>& model) {
      return model->expected_gradient(parameters[index]);
    });
  };
  if (std::ranges::all_of(unexpected, is_averaged_by_another)) return;
  throw Error({.what =
                   "gradients reached the prepared model outside of a forward of its own, so they were not "
                   "averaged over the processes",
               .where = fmt::format("rank {}, {}", impl_->group->rank(), impl_->module->name()),
               .hint = "call the prepared model, as model(x), not model->forward(x) or the module itself; "
                       "and backward once for each forward, of the sum of the losses"});
}
bool DdpReplica::expected_gradient(const at::Tensor& parameter) const {
  const std::optional<std::size_t> index = impl_->reduced_index(parameter);
  return index && impl_->watch->expected(*index);
}
bool DdpReplica::awaits_gradients() const {
  return impl_->reducer->is_incomplete();
}
void DdpReplica::require_gradients() {
  if (!awaits_gradients()) return;
  impl_->with_unused_parameters_named([&] { impl_->reducer->rebuild_buckets(); });
}
bool DdpReplica::has_parameter(const at::Tensor& parameter) const {
  return impl_->parameter_tensors.contains(parameter.unsafeGetTensorImpl());
}
bool DdpReplica::in_step() const {
  return impl_->synchronizes && !impl_->join;
}
void DdpReplica::require_equal_parameters() {
  std::vector<std::string> names;
  for (const Parameter& parameter : impl_->parameters) names.push_back(parameter.name);
  acc::detail::require_equal_parameters(names, impl_->tensors(), *impl_->group);
}
BucketLayout DdpReplica::bucket_layout() const {
  return impl_->reducer->layout();
}
void DdpReplica::settle_bucket_layout() {
  impl_->group->with_explained_errors("save_state", [&] { impl_->reducer->settle_layout(); });
}
void DdpReplica::set_bucket_layout(const BucketLayout& layout) {
  if (!is_layout_of(layout, impl_->reduced_tensors(), impl_->reduced_sparse())) return;
  impl_->make_new_reducer();
  impl_->reducer->set_layout(layout);
}
ProcessGroup& DdpReplica::group() const {
  return *impl_->group;
}
at::Device DdpReplica::device() const {
  return impl_->device;
}
void DdpReplica::average_parameters() {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : impl_->tensors()) {
    at::Tensor mean = parameter.detach();
    impl_->group->all_reduce(mean, ReduceOp::mean);
    parameter.copy_(mean);
  }
}
void DdpReplica::require_apart_from(const DdpReplica& other, std::string_view function) const {
  const auto shared = std::ranges::find_if(impl_->parameters, [&](const Parameter& one) {
    return one.reduced && other.has_parameter(one.tensor);
  });
  if (shared == impl_->parameters.end()) return;
  throw Error(
      {.what = fmt::format("belongs to two prepared models, and {} would average it wrongly", function),
       .where = fmt::format("parameter '{}'", shared->name),
       .hint = fmt::format("prepare one module that contains both models, or train without {}", function)});
}
void DdpReplica::require_no_sparse_gradients_shared_with(const DdpReplica& other) const {
  const auto shared = std::ranges::find_if(impl_->parameters, [&](const Parameter& one) {
    return std::ranges::any_of(other.impl_->parameters, [&](const Parameter& twin) {
      return twin.tensor.is_same(one.tensor) && (twin.has_sparse_gradient || one.has_sparse_gradient);
    });
  });
  if (shared == impl_->parameters.end()) return;
  throw Error({.what = "belongs to two prepared models, and both would average its sparse gradients in place",
               .where = fmt::format("parameter '{}'", shared->name),
               .hint = "make the embedding without sparse(true), or prepare one module that contains both "
                       "models"});
}
void DdpReplica::set_join(std::shared_ptr<JoinedStep> step) {
  if (step != nullptr) {
    impl_->require_no_sparse_gradients("join_uneven_inputs");
    require_no_sync_batch_norms(*impl_->module, "join_uneven_inputs");
  }
  impl_->join = std::move(step);
}
void DdpReplica::shadow_step() {
  impl_->group->with_explained_errors("join", [&] { impl_->shadow_step(); });
}
void DdpReplica::finish_join(bool was_last) {
  impl_->broadcast_state(impl_->agree_on_rank(was_last));
}

void DistributedModule::require_outside_checkpoint() {
  if (!has_saved_tensor_hooks()) return;
  throw Error({.what = "was called within acc::checkpoint, whose second pass would average gradients again",
               .where = "a prepared model",
               .hint = "call acc::checkpoint inside the model, for each of its blocks"});
}

std::shared_ptr<DdpReplica> require_replica(const std::shared_ptr<DistributedModule>& module,
                                            std::string_view function) {
  if (module == nullptr) return nullptr;
  if (auto replica = std::dynamic_pointer_cast<DdpReplica>(module)) return replica;
  throw Error({.what = "needs a whole model on each process, and this one is sharded",
               .where = std::string(function),
               .hint = "train without fsdp (--use_fsdp) to use it"});
}

}  // namespace acc::detail
