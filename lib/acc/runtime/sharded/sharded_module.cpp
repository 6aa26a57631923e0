// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/sharded_module.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/runtime/parallel/gradient_hooks.hpp"
#include "acc/runtime/parallel/parameter_agreement.hpp"
#include "acc/runtime/parallel/sync_batch_norm.hpp"
#include "acc/runtime/parallel/whole_module.hpp"
#include "acc/runtime/sharded/call_order.hpp"
#include "acc/runtime/sharded/gradient_reduction.hpp"
#include "acc/runtime/sharded/operator_watch.hpp"
#include "acc/runtime/sharded/unit.hpp"
#include "acc/runtime/sharded/unit_plan.hpp"

namespace acc::detail {
namespace {

enum class Phase { idle, forward, backward };

// What a process does with a unit.
enum class Call { gather_in_forward, gather_in_backward, gather, average, collect, end };
constexpr std::int64_t kCalls = static_cast<std::int64_t>(Call::end) + 1;

// A call for CallOrder, and back.
std::int64_t number_of(Call call, std::size_t unit) {
  return static_cast<std::int64_t>(unit) * kCalls + static_cast<std::int64_t>(call);
}
std::pair<Call, std::size_t> call_of(std::int64_t number) {
  return {static_cast<Call>(number % kCalls), static_cast<std::size_t>(number / kCalls)};
}

// Tags of messages: each module has a range of its own, in which each unit has two and the order one.
constexpr int kTagsOfModule = 1 << 16;
constexpr std::size_t kMaxUnits = (kTagsOfModule - 1) / 2;

int next_tag() {
  static std::atomic<int> modules = 0;
  return ++modules * kTagsOfModule;
}

// Predicts which unit is used next, from the order of the pass before.
class UseOrder {
 public:
  void begin() {
    if (!present_.empty()) last_ = std::exchange(present_, {});
    position_ = 0;
  }
  std::optional<std::size_t> first() const {
    return last_.empty() ? std::nullopt : std::optional(last_.front());
  }
  std::optional<std::size_t> next_after(std::size_t used) {
    present_.push_back(used);
    const auto begin = last_.begin() + static_cast<std::ptrdiff_t>(position_);
    const auto found = std::find(begin, last_.end(), used);
    if (found == last_.end()) return {};
    position_ = static_cast<std::size_t>(found - last_.begin()) + 1;
    return position_ < last_.size() ? std::optional(last_[position_]) : std::nullopt;
  }

 private:
  std::vector<std::size_t> last_ = {};
  std::vector<std::size_t> present_ = {};
  std::size_t position_ = 0;
};

// What a parameter has as its gradient while the gradient itself is kept in shards: a tensor without memory.
// A program that resets it, as torch::nn::Module::zero_grad does, asks for the gradient to be dropped.
class GradientMark {
 public:
  void set(const at::Tensor& parameter) {
    if (!mark_.defined())
      mark_ = at::empty(parameter.sizes(), parameter.options().device(at::kMeta).requires_grad(false));
    parameter.mutable_grad() = mark_;
    version_ = static_cast<std::int64_t>(mark_._version());
    is_set_ = true;
  }
  void remove(const at::Tensor& parameter) {
    // Also the copy of it that Module::zero_grad(false) leaves.
    if (is_set_ && parameter.grad().defined() && parameter.grad().is_meta()) parameter.mutable_grad().reset();
    is_set_ = false;
  }
  bool is_on(const at::Tensor& parameter) const { return is_set_ && parameter.grad().is_same(mark_); }
  bool was_reset(const at::Tensor& parameter) const { return is_set_ && !is_on(parameter); }
  // Also when another gradient was put there.
  bool was_changed(const at::Tensor& parameter) const {
    if (is_on(parameter)) return static_cast<std::int64_t>(mark_._version()) != version_;
    return is_set_ && parameter.grad().defined() && !parameter.grad().is_meta();
  }

 private:
  at::Tensor mark_ = {};
  std::int64_t version_ = 0;
  bool is_set_ = false;
};

// Whether an operator does not read its arguments' values: it makes views, or new tensors of the same shape.
bool reads_no_values(const c10::OperatorHandle& op) {
  return op.schema().name().ends_with("_like") || returns_views(op);
}

}  // namespace

struct ShardedModule::Impl : std::enable_shared_from_this<ShardedModule::Impl> {
  std::shared_ptr<torch::nn::Module> module = {};
  std::optional<KnownParameters> known_parameters = {};
  std::shared_ptr<ProcessGroup> group = {};
  ShardedModuleOptions options = {};
  int tag = next_tag();
  std::vector<std::unique_ptr<Unit>> units = {};
  std::vector<GradientReduction> reductions = {};
  // Of the pieces of each unit.
  std::vector<std::vector<GradientMark>> marks = {};
  std::unique_ptr<CallOrder> order = {};
  // The numbers of the last calls for each unit in `order`.
  std::vector<std::int64_t> gathers = {};
  std::vector<std::int64_t> averages = {};
  // The parts of shards that optimizers have; a process may have none.
  std::unordered_set<const c10::TensorImpl*> optimized = {};
  // The units and their pieces that each optimizer trains, in all processes.
  std::unordered_map<const torch::optim::Optimizer*, std::vector<std::pair<std::size_t, std::size_t>>>
      trained = {};
  bool has_optimizer = false;
  // Those that are in no unit: of ignored modules, frozen, and whole on each process.
  std::vector<std::pair<std::string, at::Tensor>> ignored = {};

  Phase phase = Phase::idle;
  UseOrder uses_in_forward = {};
  UseOrder uses_in_backward = {};
  // The unit that was used last, and that which was gathered ahead; not the root.
  std::optional<std::size_t> current = {};
  std::optional<std::size_t> ahead = {};
  // How many callers of gather_all want all units to stay.
  int pins = 0;
  bool synchronizes = true;
  bool synchronizes_once = false;
  bool buffers_due = true;
  std::size_t peak_bytes = 0;
  GradientHooks hooks = {};

  bool frees() const { return options.fsdp.reshard_after_forward; }
  std::string where() const { return fmt::format("rank {}, {}", group->rank(), module->name()); }
  std::string label(std::size_t unit) const {
    return units[unit]->is_root() ? "the root's parameters" : fmt::format("'{}'", units[unit]->name());
  }

  std::string describe(std::int64_t number) const {
    const auto [call, unit] = call_of(number);
    switch (call) {
      case Call::gather_in_forward:
        return fmt::format("gathers {} in forward", label(unit));
      case Call::gather_in_backward:
        return fmt::format("gathers {} in backward", label(unit));
      case Call::average:
        return fmt::format("averages the gradients of {}", label(unit));
      case Call::end:
        return "has ended its forward or backward";
      case Call::gather:
      case Call::collect:
        break;
    }
    return fmt::format("gathers {} outside of forward", label(unit));
  }
  std::int64_t announce(Call call, std::size_t unit, const std::vector<bool>& pieces = {}) const {
    return order->announce(number_of(call, unit), pieces);
  }

  void make_units();
  void take_ignored_parameters();
  void watch_gradients(std::size_t unit);
  void require_unchanged() const;

  void start_gather(std::size_t unit, Call call);
  void finish_gather(std::size_t unit);
  at::Tensor collect_parts(std::size_t unit, const at::Tensor& part);
  void refill(std::size_t unit);
  void release(std::size_t unit);
  void release_all_but(bool kept_for_backward);

  void use(std::size_t unit, const c10::OperatorHandle& op);
  [[noreturn]] void refuse_change(std::size_t unit) const;
  void make_current(std::size_t unit);
  void gather_ahead(std::optional<std::size_t> next, Call call);
  void begin_backward();
  void end_backward();
  void finish_backward();
  void keep_changes();
  void take_up_reset(std::size_t unit, std::size_t piece);
  void take_up_resets();
  void before_gradient(std::size_t unit, std::size_t piece);
  void take_gradient(std::size_t unit, std::size_t piece);
  void start_average(std::size_t unit);
  void finish_averages();
};

void ShardedModule::Impl::make_units() {
  const std::vector<UnitPlan> plans = plan_same_units(*module, options.fsdp, *group);
  if (plans.size() > kMaxUnits) {
    throw Error({.what = fmt::format("{} units are too many: at most {}", plans.size(), kMaxUnits),
                 .where = module->name(),
                 .hint = "choose larger modules"});
  }
  const UnitOptions unit_options{.rank = group->rank(),
                                 .size = group->size(),
                                 .compute = options.compute,
                                 .device = options.device,
                                 .frees = frees()};
  gathers.resize(plans.size());
  averages.resize(plans.size());
  for (const UnitPlan& plan : plans) {
    std::vector<Piece> pieces;
    for (const auto& [name, tensor] : plan.parameters) {
      pieces.push_back({.name = name,
                        .parameter = tensor,
                        .shape = tensor.sizes().vec(),
                        .numel = tensor.numel(),
                        .trains = tensor.requires_grad()});
    }
    const std::size_t index = units.size();
    units.push_back(std::make_unique<Unit>(plan.name, plan.name.empty(), std::move(pieces), unit_options));
    Unit& unit = *units.back();
    unit.take_parameters(*group);
    reductions.emplace_back(unit);
    marks.emplace_back(unit.pieces().size());
    watch_gradients(index);
    unit.collect = [this, index](const at::Tensor& part) { return collect_parts(index, part); };
    unit.refill = [this, index] { refill(index); };
    if (!frees()) continue;
    unit.on_use = [this, index](Unit&, const c10::OperatorHandle& op) { use(index, op); };
    unit.release();
  }
}

// Gives them rank 0's values.
void ShardedModule::Impl::take_ignored_parameters() {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> values;
  for (auto& [name, parameter] : distinct_parameters(*module)) {
    if (unit_of(parameter) != nullptr) continue;
    if (parameter.device() != options.device) parameter.set_data(parameter.to(options.device));
    values.push_back(parameter.detach());
    ignored.emplace_back(name, parameter);
  }
  group->broadcast(values, 0);
}

void ShardedModule::Impl::watch_gradients(std::size_t unit) {
  const at::AutoGradMode with_graph(true);
  const auto& pieces = units[unit]->pieces();
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    if (!pieces[piece].trains) continue;
    hooks.add(
        pieces[piece].parameter, [this, unit, piece] { take_gradient(unit, piece); },
        [this, unit, piece] { before_gradient(unit, piece); });
  }
}

void ShardedModule::Impl::require_unchanged() const {
  known_parameters->require();
  for (const auto& [name, parameter] : ignored) {
    if (!parameter.requires_grad()) continue;
    throw Error({.what = "was unfrozen after the model was prepared, which sharding does not allow",
                 .where = fmt::format("parameter '{}'", name),
                 .hint = "unfreeze it before prepare, and do not ignore its module"});
  }
  for (const auto& unit : units) {
    for (const Piece& piece : unit->pieces()) {
      const std::string name = fmt::format("parameter '{}'", piece.name);
      if (!piece.has_values)
        throw Error({.what = "was made on the meta device and has no values",
                     .where = name,
                     .hint = "load_model or load_state gives it values"});
      if (unit_of(piece.parameter) != unit.get())
        throw Error({.what = "its memory was replaced after the model was prepared, which sharding does not "
                             "allow",
                     .where = name,
                     .hint = "load, convert and move a model before prepare; load_model and load_state load "
                             "into it afterwards"});
      if (unit->has_newer_shard() && (!frees() || pins > 0))
        throw Error({.what = "the optimizer has stepped, and the parameters were not gathered after it",
                     .where = where(),
                     .hint = "call step() of the optimizer that prepare returned, not of LibTorch's own"});
      if (piece.parameter.requires_grad() != piece.trains)
        throw Error({.what = fmt::format("was {} after the model was prepared, which sharding does not allow",
                                         piece.trains ? "frozen" : "unfrozen"),
                     .where = name,
                     .hint = "freeze and unfreeze parameters before prepare"});
    }
  }
}

void ShardedModule::Impl::start_gather(std::size_t unit, Call call) {
  gathers[unit] = announce(call, unit);
  // NCCL would wait on the device, where nothing ends it.
  if (!options.device.is_cpu()) order->require_same(gathers[unit]);
  units[unit]->start_gather(*group, tag + 2 * static_cast<int>(unit));
  std::size_t bytes = 0;
  for (const auto& one : units) bytes += one->is_allocated() ? one->bytes() : 0;
  peak_bytes = std::max(peak_bytes, bytes);
}

void ShardedModule::Impl::finish_gather(std::size_t unit) {
  if (units[unit]->is_complete()) return;
  order->require_same(gathers[unit]);
  units[unit]->finish_gather();
}

at::Tensor ShardedModule::Impl::collect_parts(std::size_t unit, const at::Tensor& part) {
  const at::NoGradGuard no_grad;
  const UnwatchedOperators unwatched;
  const at::Tensor own_part = part.contiguous();
  const at::Tensor flat = at::empty({own_part.numel() * group->size()}, own_part.options());
  flat.narrow(0, units[unit]->begin(), own_part.numel()).copy_(own_part);
  group->with_explained_errors("gathering of parameters", [&] {
    const std::int64_t number = announce(Call::collect, unit);
    if (!flat.device().is_cpu()) order->require_same(number);
    FlatTransfer transfer = start_all_gather(*group, flat, own_part, tag + 2 * static_cast<int>(unit));
    order->require_same(number);
    transfer.wait_received();
    transfer.wait_sent();
  });
  return flat;
}

void ShardedModule::Impl::refill(std::size_t unit) {
  if (!units[unit]->is_allocated()) return;
  const UnwatchedOperators unwatched;
  group->with_explained_errors("gathering of parameters", [&] {
    start_gather(unit, Call::gather);
    finish_gather(unit);
  });
}

void ShardedModule::Impl::release(std::size_t unit) {
  if (pins > 0 || !units[unit]->is_allocated()) return;
  finish_gather(unit);
  units[unit]->release();
}

void ShardedModule::Impl::release_all_but(bool kept_for_backward) {
  for (std::size_t i = 0; i < units.size(); ++i)
    if (!kept_for_backward || (i != current && !units[i]->is_root())) release(i);
  if (!kept_for_backward) current.reset();
  ahead.reset();
}

void ShardedModule::Impl::use(std::size_t index, const c10::OperatorHandle& op) {
  const Unit& unit = *units[index];
  if (pins == 0 && is_written(unit)) refuse_change(index);
  if (unit.is_complete() && (index == current || unit.is_root() || pins > 0)) return;
  const bool in_backward = torch::autograd::get_current_graph_task_id() != -1;
  if (in_backward && phase == Phase::idle) begin_backward();
  if (phase == Phase::idle || (phase == Phase::backward && !in_backward)) {
    if (unit.is_complete() || reads_no_values(op)) return;
    throw Error({.what = fmt::format("{} cannot be used here: each process has only a shard", label(index)),
                 .where = where(),
                 .hint = "call the prepared model, as model(x); read and change parameters while "
                         "accelerator.gathered_parameters(model) exists, on all processes"});
  }
  group->with_explained_errors(phase == Phase::forward ? "forward" : "backward",
                               [&] { make_current(index); });
}

void ShardedModule::Impl::refuse_change(std::size_t index) const {
  throw Error({.what = fmt::format("{} cannot be changed here: each process keeps only a shard, and what was "
                                   "gathered is freed",
                                   label(index)),
               .where = where(),
               .hint = "change parameters while accelerator.gathered_parameters(model) exists, on all "
                       "processes; or shard without freeing them: reshard_after_forward = false"});
}

void ShardedModule::Impl::make_current(std::size_t index) {
  const at::NoGradGuard no_grad;
  const UnwatchedOperators unwatched;
  const Call call = phase == Phase::forward ? Call::gather_in_forward : Call::gather_in_backward;
  // A module that has the unit's among its own goes on afterwards.
  const auto encloses = [&](std::size_t other) {
    return units[index]->name().starts_with(units[other]->name() + ".");
  };
  if (!units[index]->is_root()) {
    for (std::size_t i = 0; i < units.size(); ++i)
      if (i != index && i != ahead && !units[i]->is_root() && !encloses(i) && !is_in_use(*units[i]))
        release(i);
  }
  if (!units[index]->is_allocated()) start_gather(index, call);
  finish_gather(index);
  if (units[index]->is_root()) return;
  current = index;
  if (ahead == index) ahead.reset();
  UseOrder& uses = phase == Phase::forward ? uses_in_forward : uses_in_backward;
  gather_ahead(uses.next_after(index), call);
}

void ShardedModule::Impl::gather_ahead(std::optional<std::size_t> next, Call call) {
  if (!next || !options.fsdp.prefetch || units[*next]->is_allocated()) return;
  start_gather(*next, call);
  ahead = next;
}

// A backward that the program calls itself, as loss.backward(), ends in the engine's callback.
void ShardedModule::Impl::begin_backward() {
  take_up_resets();
  phase = Phase::backward;
  torch::autograd::Engine::get_default_engine().queue_callback([weak = weak_from_this()] {
    if (const auto alive = weak.lock()) alive->finish_backward();
  });
  uses_in_backward.begin();
  group->with_explained_errors("backward",
                               [&] { gather_ahead(uses_in_backward.first(), Call::gather_in_backward); });
}

void ShardedModule::Impl::take_up_reset(std::size_t unit, std::size_t piece) {
  const Piece& known = units[unit]->pieces()[piece];
  GradientMark& mark = marks[unit][piece];
  if (mark.was_changed(known.parameter)) {
    mark.set(known.parameter);
    throw Error({.what = "its gradient was changed, and stands for those in the processes' shards",
                 .where = fmt::format("rank {}, parameter '{}'", group->rank(), known.name),
                 .hint = "clip by accelerator.clip_grad_norm_, drop gradients by zero_grad, and change them "
                         "otherwise in the prepared optimizer's parameters"});
  }
  if (!mark.was_reset(known.parameter)) return;
  mark.remove(known.parameter);
  reductions[unit].drop(piece);
  for (const TrainedPart& part : units[unit]->trained_parts())
    if (part.piece == piece) part.values.mutable_grad().reset();
}

void ShardedModule::Impl::take_up_resets() {
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    for (std::size_t piece = 0; piece < marks[unit].size(); ++piece) take_up_reset(unit, piece);
}

// LibTorch would add to the mark.
void ShardedModule::Impl::before_gradient(std::size_t unit, std::size_t piece) {
  take_up_reset(unit, piece);
  marks[unit][piece].remove(units[unit]->pieces()[piece].parameter);
}

void ShardedModule::Impl::take_gradient(std::size_t unit, std::size_t piece) {
  const at::NoGradGuard no_grad;
  const UnwatchedOperators unwatched;
  const at::Tensor& parameter = units[unit]->pieces()[piece].parameter;
  if (marks[unit][piece].is_on(parameter)) return;  // there is no new one
  // Taken also if it is refused: left there, it would meet the next backward.
  const at::Tensor gradient = std::exchange(parameter.mutable_grad(), {});
  if (!gradient.defined()) return;
  marks[unit][piece].set(parameter);
  if (gradient.layout() != at::kStrided) refuse_sparse_gradient(units[unit]->pieces()[piece].name);
  if (gradient.requires_grad()) {
    throw Error(
        {.what = "got a gradient with a graph of its own (create_graph), which averaging would cut off",
         .where = fmt::format("rank {}, parameter '{}'", group->rank(), units[unit]->pieces()[piece].name),
         .hint = "take gradients that are part of a loss by torch::autograd::grad, and call backward of "
                 "that loss; or train without fsdp (--use_fsdp)"});
  }
  if (phase == Phase::idle) begin_backward();
  const bool averages_now = synchronizes || synchronizes_once;
  // All of them: which have gradients to keep may differ between the processes.
  if (!averages_now)
    for (GradientReduction& one : reductions) one.average_in_float();
  reductions[unit].add(piece, gradient, !averages_now);
  if (averages_now && reductions[unit].is_complete())
    group->with_explained_errors("backward", [&] { start_average(unit); });
}

void ShardedModule::Impl::start_average(std::size_t unit) {
  if (current == unit) current.reset();
  if (frees()) release(unit);
  finish_averages();  // one at a time, for its memory
  averages[unit] = announce(Call::average, unit, reductions[unit].pieces());
  if (!options.device.is_cpu()) order->require_same(averages[unit]);
  reductions[unit].start(*group, tag + 2 * static_cast<int>(unit) + 1);
}

void ShardedModule::Impl::finish_averages() {
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!reductions[i].is_started()) continue;
    // The others keep what they have, which may be no gradient.
    const std::vector<bool> used = order->parts_of_all(averages[i]);
    const at::Tensor mean = reductions[i].finish();
    if (!has_optimizer) {
      throw Error({.what = "the model is sharded, but no prepared optimizer has its parameters",
                   .where = where(),
                   .hint = "prepare the model and its optimizer: prepare(model, std::move(optimizer))"});
    }
    for (std::size_t piece = 0; piece < marks[i].size(); ++piece)
      if (used[piece]) marks[i][piece].set(units[i]->pieces()[piece].parameter);
    for (const auto& [piece, overlap, values] : units[i]->trained_parts()) {
      if (!used[piece]) continue;
      // Not a view for autograd: LibTorch's zero_grad detaches gradients in place.
      const at::Tensor part = mean.narrow(0, overlap.in_shard, overlap.length).variable_data();
      at::Tensor& gradient = values.mutable_grad();
      if (gradient.defined()) {
        gradient.add_(part);
      } else {
        gradient = part;
      }
    }
  }
}

void ShardedModule::Impl::end_backward() {
  if (phase != Phase::backward) return;
  const at::NoGradGuard no_grad;
  const UnwatchedOperators unwatched;
  group->with_explained_errors("backward", [&] {
    if (synchronizes || synchronizes_once) {
      // Units of which some parameters were not used.
      for (std::size_t i = 0; i < units.size(); ++i)
        if (!reductions[i].is_empty()) start_average(i);
    }
    finish_averages();
    if (frees()) release_all_but(/*kept_for_backward=*/false);
    announce(Call::end, 0);
  });
  phase = Phase::idle;
  synchronizes_once = false;
}

// Ends it, and returns when the shards may change.
void ShardedModule::Impl::finish_backward() {
  end_backward();
  group->with_explained_errors("backward", [&] {
    for (const auto& unit : units) unit->settle();
  });
}

// Of gathered parameters that the program may have changed.
void ShardedModule::Impl::keep_changes() {
  if (frees() && pins == 0) return;
  const UnwatchedOperators unwatched;
  for (const auto& unit : units) unit->keep_changes();
}

namespace {

std::atomic<int> watched_modules = 0;

// Before the module is changed: a module that was refused can be used on.
void require_values_of_buffers(const torch::nn::Module& module) {
  for (const auto& item : module.named_buffers()) {
    if (item.value().is_meta()) {
      throw Error({.what = "is on the meta device",
                   .where = fmt::format("buffer '{}'", item.key()),
                   .hint = "make buffers on the CPU: they are not sharded"});
    }
  }
}

// As they will be: on another device, what expand() returned has memory for each element.
torch::OrderedDict<std::string, at::Tensor> buffers_on(at::Device device, const torch::nn::Module& module) {
  torch::OrderedDict<std::string, at::Tensor> buffers = module.named_buffers();
  for (auto& item : buffers) item.value() = item.value().to(device);
  return buffers;
}

// Whether tensors of one storage have elements in common, as far as LibTorch can tell at once.
bool overlap(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_meta()) return a.storage_offset() == b.storage_offset();  // there are no addresses
  const at::MemOverlapStatus status = at::get_overlap_status(a, b);
  return status == at::MemOverlapStatus::Full || status == at::MemOverlapStatus::Partial;
}

// Each parameter gets memory of its own in its unit: two that share some would be trained apart.
void require_memory_of_parameters(const torch::nn::Module& module) {
  using Named = std::pair<std::string, at::Tensor>;
  std::unordered_map<const c10::StorageImpl*, std::vector<Named>> by_storage;
  for (const auto& item : module.named_parameters()) {
    if (!item.value().has_storage()) continue;
    std::vector<Named>& others = by_storage[item.value().storage().unsafeGetStorageImpl()];
    for (const auto& [name, other] : others) {
      if (!other.requires_grad() && !item.value().requires_grad()) continue;
      if (other.is_same(item.value()) || !overlap(other, item.value())) continue;
      throw Error(
          {.what =
               fmt::format("shares memory with parameter '{}', and sharding would train them apart", name),
           .where = fmt::format("parameter '{}'", item.key()),
           .hint = "register one of them, and use it in both places, as torch::linear(x, first->weight); or "
                   "train without fsdp (--use_fsdp)"});
    }
    others.emplace_back(item.key(), item.value());
  }
}

// A parameter gets memory in its unit: a buffer over the old one would keep the values of the start.
void require_memory_of_buffers(const torch::nn::Module& module) {
  std::unordered_map<const c10::StorageImpl*, std::string> parameters;
  for (const auto& item : module.named_parameters())
    if (item.value().has_storage())
      parameters.emplace(item.value().storage().unsafeGetStorageImpl(), item.key());
  for (const auto& item : module.named_buffers()) {
    if (!item.value().has_storage()) continue;
    const auto shared = parameters.find(item.value().storage().unsafeGetStorageImpl());
    if (shared == parameters.end()) continue;
    throw Error(
        {.what = fmt::format("shares memory with parameter '{}', which sharding moves", shared->second),
         .where = fmt::format("buffer '{}'", item.key()),
         .hint = "make it a copy, or use the parameter in its place; or train without fsdp (--use_fsdp)"});
  }
}

}  // namespace

namespace {

// The watch that gathers parameters does not see what these compute with: it would be freed memory.
void require_no_whole_modules(const torch::nn::Module& module) {
  const auto check = [](const torch::nn::Module& part) {
    const auto* whole = dynamic_cast<const WholeModule*>(&part);
    if (whole == nullptr) return;
    throw Error({.what = fmt::format("is {}, which cannot be sharded", whole->kind()),
                 .where = part.name(),
                 .hint = "train it without fsdp (--use_fsdp), or write it in C++ and read its weights"});
  };
  check(module);
  for (const auto& layer : module.modules(/*include_self=*/false)) check(*layer);
}

}  // namespace

ShardedModule::ShardedModule(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group,
                             ShardedModuleOptions options)
    : impl_(std::make_shared<Impl>()) {
  require_valid(options.fsdp);
  require_no_whole_modules(*module);
  impl_->module = std::move(module);
  impl_->group = std::move(group);
  impl_->options = std::move(options);
  require_values_of_buffers(*impl_->module);
  require_memory_of_parameters(*impl_->module);
  require_memory_of_buffers(*impl_->module);
  require_own_memory("parameter", impl_->module->named_parameters());
  require_own_memory("buffer", buffers_on(impl_->options.device, *impl_->module));
  require_same_parameters(*impl_->module, *impl_->group);
  impl_->order = std::make_unique<CallOrder>(
      impl_->group, impl_->tag + kTagsOfModule - 1,
      [this](std::int64_t call) { return impl_->describe(call); }, impl_->module->parameters().size());
  if (impl_->frees()) {
    watch_operators(true);
    ++watched_modules;
  }
  const UnwatchedOperators unwatched;
  impl_->make_units();
  impl_->known_parameters.emplace(impl_->module, KnownParameters::Scope::all);
  impl_->take_ignored_parameters();
  std::vector<at::Tensor> buffers;
  for (at::Tensor& buffer : impl_->module->buffers()) {
    buffer.set_data(buffer.to(impl_->options.device));
    buffers.push_back(buffer.detach());
  }
  impl_->group->broadcast(buffers, 0);
  use_group_in_sync_batch_norms(*impl_->module, impl_->group);
}

ShardedModule::~ShardedModule() {
  for (std::size_t unit = 0; unit < impl_->units.size(); ++unit)
    for (std::size_t piece = 0; piece < impl_->marks[unit].size(); ++piece)
      impl_->marks[unit][piece].remove(impl_->units[unit]->pieces()[piece].parameter);
  if (impl_->frees() && --watched_modules == 0) watch_operators(false);
}

bool ShardedModule::synchronizes() const {
  return impl_->synchronizes;
}
void ShardedModule::set_synchronizes(bool on) {
  impl_->synchronizes = on;
}
void ShardedModule::synchronize_next_backward() {
  impl_->synchronizes_once = true;
}
void ShardedModule::after_backward(const std::vector<std::shared_ptr<DistributedModule>>& /*models*/) {
  impl_->finish_backward();
  impl_->take_up_resets();
  impl_->keep_changes();
}
bool ShardedModule::has_parameter(const at::Tensor& parameter) const {
  const auto is_it = [&](const auto& one) { return one.second.is_same(parameter); };
  return impl_->optimized.contains(parameter.unsafeGetTensorImpl()) ||
         std::ranges::any_of(impl_->ignored, is_it);
}
void ShardedModule::require_equal_parameters() {
  std::vector<std::string> names;
  std::vector<at::Tensor> whole;
  const auto add = [&](const std::string& name, const at::Tensor& parameter) {
    names.push_back(name);
    whole.push_back(parameter);
  };
  for (const auto& [name, parameter] : impl_->ignored) add(name, parameter);
  if (!impl_->frees()) {
    for (const auto& unit : impl_->units)
      for (const Piece& piece : unit->pieces()) add(piece.name, piece.parameter);
  }
  acc::detail::require_equal_parameters(names, whole, *impl_->group);
}
bool ShardedModule::in_step() const {
  return impl_->synchronizes;
}
at::ScalarType ShardedModule::compute_type() const {
  return impl_->options.compute;
}
const std::vector<std::unique_ptr<Unit>>& ShardedModule::units() const {
  return impl_->units;
}
ProcessGroup& ShardedModule::group() const {
  return *impl_->group;
}
const torch::nn::Module& ShardedModule::module() const {
  return *impl_->module;
}
void ShardedModule::add_optimizer(const torch::optim::Optimizer& optimizer,
                                  const std::vector<std::pair<const Unit*, std::size_t>>& pieces,
                                  const std::vector<at::Tensor>& parts) {
  impl_->has_optimizer = true;
  auto& trained = impl_->trained[&optimizer];
  trained.clear();  // those of one that was destroyed
  for (const auto& [unit, piece] : pieces) {
    const auto found = std::ranges::find(impl_->units, unit, &std::unique_ptr<Unit>::get);
    if (found != impl_->units.end())
      trained.emplace_back(static_cast<std::size_t>(found - impl_->units.begin()), piece);
  }
  for (const at::Tensor& part : parts) impl_->optimized.insert(part.unsafeGetTensorImpl());
}

void ShardedModule::drop_gradients(const torch::optim::Optimizer& optimizer) {
  const auto trained = impl_->trained.find(&optimizer);
  // A hook of a backward that is still going on may call it.
  if (trained == impl_->trained.end() || torch::autograd::get_current_graph_task_id() != -1) return;
  for (const auto& [unit, piece] : trained->second) {
    impl_->reductions[unit].drop(piece);
    impl_->marks[unit][piece].remove(impl_->units[unit]->pieces()[piece].parameter);
  }
  impl_->finish_backward();
}

void ShardedModule::after_step() {
  const UnwatchedOperators unwatched;
  impl_->group->with_explained_errors("optimizer step", [&] {
    if (impl_->frees() && impl_->pins == 0) return impl_->release_all_but(/*kept_for_backward=*/false);
    for (std::size_t i = 0; i < impl_->units.size(); ++i) impl_->start_gather(i, Call::gather);
    for (std::size_t i = 0; i < impl_->units.size(); ++i) impl_->finish_gather(i);
  });
}

void ShardedModule::before_forward() {
  impl_->finish_backward();
  impl_->keep_changes();
  impl_->require_unchanged();
  impl_->take_up_resets();
  const UnwatchedOperators unwatched;
  impl_->group->with_explained_errors("forward", [&] {
    const std::vector<at::Tensor> buffers = impl_->module->buffers();
    if (impl_->buffers_due && impl_->options.broadcast_buffers && !buffers.empty())
      impl_->group->broadcast(buffers, 0);
    impl_->phase = Phase::forward;
    if (!impl_->frees()) return;
    watch_operators(true);  // in this thread, too
    impl_->uses_in_forward.begin();
    for (std::size_t i = 0; i < impl_->units.size(); ++i)
      if (impl_->units[i]->is_root() && !impl_->units[i]->is_allocated())
        impl_->start_gather(i, Call::gather_in_forward);
    impl_->gather_ahead(impl_->uses_in_forward.first(), Call::gather_in_forward);
  });
}

void ShardedModule::after_forward(const std::vector<at::Tensor*>& /*outputs*/) {
  const UnwatchedOperators unwatched;
  const bool with_graph = at::GradMode::is_enabled();
  impl_->phase = Phase::idle;
  impl_->buffers_due = with_graph;
  impl_->group->with_explained_errors("forward", [&] {
    if (impl_->frees()) impl_->release_all_but(/*kept_for_backward=*/with_graph);
    impl_->announce(Call::end, 0);
  });
}

void ShardedModule::abandon_forward() noexcept {
  impl_->phase = Phase::idle;
}

void ShardedModule::gather_all() {
  const UnwatchedOperators unwatched;
  impl_->group->with_explained_errors("gathered_parameters", [&] {
    for (std::size_t i = 0; i < impl_->units.size(); ++i)
      if (!impl_->units[i]->is_allocated()) impl_->start_gather(i, Call::gather);
    for (std::size_t i = 0; i < impl_->units.size(); ++i) impl_->finish_gather(i);
  });
  ++impl_->pins;
}

void ShardedModule::release_all() {
  impl_->keep_changes();
  const UnwatchedOperators unwatched;
  if (--impl_->pins == 0 && impl_->frees()) impl_->release_all_but(/*kept_for_backward=*/false);
}

std::size_t ShardedModule::take_peak_bytes() {
  return std::exchange(impl_->peak_bytes, 0);
}

}  // namespace acc::detail
