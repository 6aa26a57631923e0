// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/ddp.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <iterator>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "acc/base/error.hpp"
#include "acc/runtime/parallel/gradient_sink.hpp"
#include "acc/runtime/parallel/joined_step.hpp"
#include "acc/runtime/parallel/parameter_agreement.hpp"
#include "acc/runtime/parallel/reducer.hpp"
#include "acc/runtime/parallel/sync_batch_norm.hpp"
#include "acc/runtime/parallel/unused_parameters.hpp"

namespace acc {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

std::vector<at::Tensor> values_of(const std::vector<at::Tensor*>& places) {
  std::vector<at::Tensor> values;
  std::ranges::transform(places, std::back_inserter(values), [](const at::Tensor* place) { return *place; });
  return values;
}

}  // namespace

struct Ddp::Impl {
  std::shared_ptr<torch::nn::Module> module = {};
  std::shared_ptr<ProcessGroup> group = {};
  Group native = {};
  DdpOptions options = {};
  std::shared_ptr<c10d::Reducer> reducer = {};
  at::Device device = at::kCPU;
  bool synchronizes = true;
  // Buffers changed since they were last broadcast only where the last forward was one that trains.
  bool buffers_due = true;
  // The first backward of a static graph reduces everything at its end.
  bool reduces_late = false;
  std::shared_ptr<JoinedStep> join = {};

  at::Tensor flag(bool on) const { return at::full({1}, on ? 1.0 : 0.0, at::TensorOptions(device)); }

  // The highest rank of those that may be the one; every process gets the same answer.
  int agree_on_rank(bool may_be_this) const {
    at::Tensor rank =
        at::full({1}, may_be_this ? group->rank() : -1, at::TensorOptions(device).dtype(at::kLong));
    group->all_reduce(rank, ReduceOp::max);
    return static_cast<int>(rank.item<std::int64_t>());
  }

  void broadcast_state(int from) const {
    std::vector<at::Tensor> state = module->parameters();
    if (options.broadcast_buffers) std::ranges::copy(module->buffers(), std::back_inserter(state));
    std::ranges::transform(state, state.begin(), [](const at::Tensor& tensor) { return tensor.detach(); });
    group->broadcast(state, from);
  }

  // Rank 0 may have run out of data; its buffers are then old.
  void broadcast_buffers(bool has_data) const {
    const std::vector<at::Tensor> buffers = module->buffers();
    if (!buffers_due || !options.broadcast_buffers || buffers.empty()) return;
    group->broadcast(buffers, join ? agree_on_rank(has_data) : 0);
  }

  void tell_that_a_step_begins(const Ddp* self) const {
    if (join->first == self) {
      std::vector<at::Tensor> one{flag(true)};
      join->begins = native->allreduce(one);
    }
    reducer->set_forward_pass_work_handle(join->begins, join->divide_by_initial_world_size);
  }

  void prepare(const Ddp* self) {
    const bool trains = at::GradMode::is_enabled();
    if (trains && synchronizes) reducer->prepare_for_forward();
    if (join) tell_that_a_step_begins(self);
    if (trains) reducer->rebuild_buckets();
    broadcast_buffers(/*has_data=*/true);
    if (join) {
      at::Tensor will_reduce = flag(trains && synchronizes);
      group->all_reduce(will_reduce, ReduceOp::sum);
    }
  }

  void start_late_reduction() {
    if (!reduces_late) return;
    reduces_late = false;
    torch::autograd::Engine::get_default_engine().queue_callback(
        [reducer = reducer] { reducer->delay_all_reduce(); });
  }

  // Outputs that no graph leads to stay as they are.
  static void sink(const std::shared_ptr<Impl>& impl, std::vector<at::Tensor*> outputs) {
    std::erase_if(outputs, [](const at::Tensor* output) { return output->is_leaf(); });
    if (outputs.empty()) return;
    const auto on_backward = [weak = std::weak_ptr(impl)] {
      if (const auto alive = weak.lock()) alive->start_late_reduction();
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
    at::Tensor will_reduce = flag(false);
    group->all_reduce(will_reduce, ReduceOp::sum);
    buffers_due = will_reduce.item<double>() != 0;
    if (buffers_due) reduce_zeros();
  }
};

Ddp::Ddp(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group, DdpOptions options)
    : impl_(std::make_shared<Impl>()) {
  impl_->module = std::move(module);
  impl_->group = std::move(group);
  impl_->native = Group::reclaim_copy(&impl_->group->native());
  impl_->options = options;
  impl_->reduces_late = options.static_graph;
  require_same_parameters(*impl_->module, *impl_->group);
  const std::vector<at::Tensor> parameters = impl_->module->parameters();
  if (std::ranges::none_of(parameters, [](const at::Tensor& one) { return one.requires_grad(); })) {
    throw Error({.what = "no parameter needs a gradient",
                 .where = impl_->module->name(),
                 .hint = "use a model that is not trained without preparing it"});
  }
  impl_->device = parameters.front().device();
  impl_->broadcast_state(/*from=*/0);
  use_group_in_sync_batch_norms(*impl_->module, impl_->group);
  impl_->reducer = make_reducer(*impl_->module, impl_->native, options);
}

Ddp::~Ddp() = default;

void Ddp::before_forward() {
  impl_->group->explained("forward", [&] {
    try {
      impl_->prepare(this);
    } catch (const c10::Error& error) {
      const std::string where = fmt::format("rank {}, {}", impl_->group->rank(), impl_->module->name());
      if (auto explained = explain_unused_parameters(error.what_without_backtrace(), *impl_->module, where))
        throw *explained;
      throw;
    }
  });
}

void Ddp::after_forward(const std::vector<at::Tensor*>& outputs) {
  const bool finds_unused = impl_->options.find_unused_parameters && !impl_->options.static_graph;
  impl_->buffers_due = at::GradMode::is_enabled() && impl_->synchronizes;
  if (impl_->buffers_due && finds_unused && outputs.empty()) {
    throw Error({.what = "find_unused_parameters sees no tensor in what forward gives back",
                 .where = impl_->module->name(),
                 .hint = "give back tensors, or tuples, vectors or maps of them, or declare for_each_tensor "
                         "for the type"});
  }
  if (impl_->buffers_due) {
    impl_->reducer->prepare_for_backward(finds_unused ? values_of(outputs) : std::vector<at::Tensor>{});
  }
  if (finds_unused || impl_->reduces_late) Impl::sink(impl_, outputs);
}

bool Ddp::synchronizes() const {
  return impl_->synchronizes;
}
void Ddp::set_synchronizes(bool on) {
  impl_->synchronizes = on;
}
void Ddp::synchronize_next_backward() {
  const DdpOptions& options = impl_->options;
  if (options.find_unused_parameters || options.static_graph || impl_->join) {
    throw Error({.what = fmt::format("{} has to know in forward that backward will average gradients",
                                     impl_->join                      ? "join_uneven_inputs"
                                     : options.find_unused_parameters ? "find_unused_parameters"
                                                                      : "static_graph"),
                 .where = "trigger_sync_in_backward",
                 .hint = "leave the last forward out of no_sync instead"});
  }
  impl_->reducer->prepare_for_backward({});
}
ProcessGroup& Ddp::group() const {
  return *impl_->group;
}
at::Device Ddp::device() const {
  return impl_->device;
}
void Ddp::average_parameters() {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : impl_->module->parameters()) {
    at::Tensor mean = parameter.detach();
    impl_->group->all_reduce(mean, ReduceOp::mean);
    parameter.copy_(mean);
  }
}
void Ddp::set_join(std::shared_ptr<JoinedStep> step) {
  impl_->join = std::move(step);
}
void Ddp::shadow_step() {
  impl_->group->explained("join", [&] { impl_->shadow_step(); });
}
void Ddp::finish_join(bool was_last) {
  impl_->broadcast_state(impl_->agree_on_rank(was_last));
}

}  // namespace acc
