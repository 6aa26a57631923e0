// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/accelerator/checkpointing.hpp"

#include <algorithm>
#include <limits>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/replacement.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/model_state.hpp"
#include "acc/runtime/checkpoint/model_weights.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/checkpoint/save_steps.hpp"
#include "acc/runtime/checkpoint/state_shards.hpp"
#include "acc/runtime/comm/progress.hpp"

namespace acc::detail {
namespace {

// Adapts a state for Python's schedulers: LambdaLR requires an entry for its functions, which are not saved,
// and ReduceLROnPlateau cannot read a best metric of None.
PtValue for_python(PtValue state) {
  auto* fields = std::get_if<PtDict>(&state.content);
  if (fields == nullptr) return state;
  std::erase_if(*fields, [](const PtEntry& field) { return field.value.is_none(); });
  const PtValue* base = state.find("base_lrs");
  const auto* rates = base != nullptr ? base->get_if<PtList>() : nullptr;
  if (rates != nullptr && state.find("lr_lambdas") == nullptr)
    fields->push_back({"lr_lambdas", PtList(rates->size())});
  return state;
}

Stateful stateful_of(const PreparedScheduler& scheduler) {
  return {.state = [scheduler] { return for_python(from_json(scheduler.state())); },
          .load_state = [scheduler](const PtValue& state) { scheduler.load_state(to_json(state)); }};
}

std::vector<double> base_rates(const PtValue& scheduler) {
  const PtValue* rates = scheduler.find("base_lrs");
  const auto* list = rates != nullptr ? rates->get_if<PtList>() : nullptr;
  std::vector<double> numbers;
  for (const PtValue& rate : list != nullptr ? *list : PtList()) numbers.push_back(rate.number().value_or(0));
  return numbers;
}

double field(const PtValue& state, std::string_view name) {
  const PtValue* value = state.find(name);
  const auto number = value != nullptr ? value->number() : std::nullopt;
  if (number) return *number;
  throw Error({.kind = ErrorKind::config,
               .what = "has no '" + std::string(name) + "'",
               .where = "the gradient scaler's state"});
}

// Entries as in Python's GradScaler.state_dict().
Stateful stateful_of(const std::shared_ptr<GradScaler>& scaler) {
  return {.state = [scaler]() -> PtValue {
            const GradScalerState state = scaler->state();
            return PtDict{{"scale", state.scale},
                          {"growth_factor", state.growth_factor},
                          {"backoff_factor", state.backoff_factor},
                          {"growth_interval", state.growth_interval},
                          {"_growth_tracker", state.growth_tracker}};
          },
          .load_state =
              [scaler](const PtValue& state) {
                scaler->load_state(
                    {.scale = field(state, "scale"),
                     .growth_factor = field(state, "growth_factor"),
                     .backoff_factor = field(state, "backoff_factor"),
                     .growth_interval = static_cast<std::int64_t>(field(state, "growth_interval")),
                     .growth_tracker = static_cast<std::int64_t>(field(state, "_growth_tracker"))});
              }};
}

constexpr std::size_t kNoParameter = std::numeric_limits<std::size_t>::max();

PtValue to_value(const BucketLayout& layout) {
  if (layout.empty()) return {};
  PtList buckets;
  for (const std::vector<std::size_t>& bucket : layout) {
    PtList indices;
    for (const std::size_t index : bucket) indices.emplace_back(static_cast<std::int64_t>(index));
    buckets.emplace_back(std::move(indices));
  }
  return buckets;
}

BucketLayout to_layout(const PtValue& value) {
  BucketLayout layout;
  const auto* buckets = value.get_if<PtList>();
  for (const PtValue& bucket : buckets != nullptr ? *buckets : PtList()) {
    const auto* indices = bucket.get_if<PtList>();
    layout.emplace_back();
    for (const PtValue& index : indices != nullptr ? *indices : PtList()) {
      const auto* number = index.get_if<std::int64_t>();
      // An invalid index makes set_bucket_layout ignore the whole layout.
      layout.back().push_back(number != nullptr ? static_cast<std::size_t>(*number) : kNoParameter);
    }
  }
  return layout;
}

// `ddp` is null when gradients are not averaged.
Stateful buckets_of(const std::shared_ptr<DdpReplica>& ddp) {
  return {.state = [ddp] { return ddp ? to_value(ddp->bucket_layout()) : PtValue(); },
          .load_state =
              [ddp](const PtValue& value) {
                if (ddp) ddp->set_bucket_layout(to_layout(value));
              }};
}

}  // namespace

CheckpointContent content_of(const Prepared& prepared, const std::vector<Stateful>& registered,
                             int num_processes) {
  CheckpointContent content{.registered = registered,
                            .step = prepared.gradients->step(),
                            .accumulates = !prepared.gradients->sync_gradients(),
                            .num_processes = num_processes};
  for (const PreparedModel& model : prepared.models) {
    content.models.push_back(model.module.get());
    content.gradient_buckets.push_back(buckets_of(model.ddp));
  }
  for (const Optimizer& optimizer : prepared.optimizers) content.optimizers.push_back(&optimizer.native());
  content.sharded_optimizers = prepared.sharded_optimizers;
  content.initial_rates.resize(content.optimizers.size());
  for (const PreparedScheduler& scheduler : prepared.schedulers) {
    content.schedulers.push_back(stateful_of(scheduler));
    const auto match =
        std::ranges::find(content.optimizers, scheduler.optimizer ? scheduler.optimizer() : nullptr);
    if (match != content.optimizers.end())
      content.initial_rates[static_cast<std::size_t>(match - content.optimizers.begin())] =
          base_rates(content.schedulers.back().state());
  }
  for (const auto& loader : prepared.loaders) content.loaders.push_back(stateful(*loader));
  if (prepared.scaler) content.scaler = stateful_of(prepared.scaler);
  return content;
}

SavingProcesses processes_of(const PartialState& state) {
  return {.index = state.process_index(),
          .local_index = state.local_process_index(),
          .num_local = state.worker().local_world_size,
          .group = state.process_group()};
}

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_without_folder(const char* function) {
  throw Error({.what = "needs a folder",
               .where = function,
               .hint = "give one, or set project_dir and automatic_checkpoint_naming"});
}

// As torch.save, does not create the folder: a missing one is more likely a typing error.
void require_parent(const fs::path& file) {
  const fs::path parent = resolved_path(file).parent_path();
  if (fs::is_directory(parent)) return;
  throw Error({.kind = ErrorKind::system,
               .what = "cannot be written: there is no folder " + parent.string(),
               .where = file.string(),
               .hint = "create the folder first"});
}

bool any_is_sharded(const Prepared& prepared) {
  return std::ranges::any_of(prepared.models,
                             [](const PreparedModel& one) { return one.sharded != nullptr; });
}

// Files for the gradients of an unfinished step exist for whole models alone.
void require_no_shards_of_gradients(const Prepared& prepared) {
  if (!any_is_sharded(prepared) || prepared.gradients->sync_gradients()) return;
  throw Error({.what = "gradients of a sharded model are being accumulated, and they are not saved",
               .where = "save_state",
               .hint = "save when sync_gradients() is true, after the optimizer's step"});
}

// Called only when the new checkpoint is complete. Machines may or may not share the folder.
void remove_oldest(const fs::path& folder, std::size_t limit, std::int64_t saved,
                   const SavingProcesses& processes) {
  together(processes, [&] {
    if (processes.is_main()) keep_newest(folder, limit, saved);
  });
  together(processes, [&] {
    if (processes.is_local_main() && !processes.is_main()) keep_newest(folder, limit, saved);
  });
}

}  // namespace

fs::path Checkpointing::numbered_folder() {
  if (!preparation_.options().project.automatic_checkpoint_naming) return {};
  if (preparation_.options().project_dir.empty())
    throw Error({.what = "needs project_dir", .where = "automatic_checkpoint_naming"});
  return preparation_.options().project_dir / "checkpoints";
}

SavingProcesses Checkpointing::processes_beside_training(SavesBesideTraining& saves) const {
  SavingProcesses processes = processes_of(state_);
  if (processes.group && !saves.group)
    saves.group = std::make_shared<ProcessGroup>(state_.worker(), processes.group->timeout());
  processes.group = saves.group;
  return processes;
}

CheckpointContent Checkpointing::content() {
  const Prepared& prepared = preparation_.prepared();
  require_no_shards_of_gradients(prepared);
  for (const PreparedModel& model : prepared.models) {
    if (model.ddp) model.ddp->settle_bucket_layout();
  }
  return content_of(prepared, registry_.objects, state_.num_processes());
}

void Checkpointing::wait_for_save() {
  to_disk_.thread.wait();
  to_memory_.thread.wait();
}

void Checkpointing::free_memory() {
  to_disk_.free_memory();
  to_memory_.free_memory();
  snapshots_.begin_training();
}

int Checkpointing::next_iteration(const SavingProcesses& processes) {
  int& number = preparation_.options().project.iteration;
  number = number_of_main(number, processes);
  return number;
}

fs::path Checkpointing::folder_of_next(const std::optional<fs::path>& folder,
                                       const SavingProcesses& processes) {
  const fs::path numbered = numbered_folder();
  if (numbered.empty()) {
    if (!folder) refuse_without_folder("save_state");
    return *folder;
  }
  const int number = next_iteration(processes);
  together(processes, [&] {
    if (!processes.is_local_main()) return;
    folder_to_save(numbered, number);
    remove_leftovers(numbered);
  });
  return numbered_checkpoint(numbered, number);
}

fs::path Checkpointing::save_state(const std::optional<fs::path>& folder, const SaveStateOptions& options) {
  const ProgressSection section(Section::saving);
  to_disk_.thread.wait();
  const SavingProcesses processes = processes_of(state_);
  ProjectOptions& project = preparation_.options().project;
  CheckpointContent saved = content();
  const fs::path target = folder_of_next(folder, processes);
  const std::int64_t number = snapshots_.is_on() ? snapshots_.next_number(processes) : 0;
  const SavingProcesses writing = options.background ? processes_beside_training(to_disk_) : processes;
  const auto save =
      std::make_shared<CheckpointSave>(target, saved, processes,
                                       SaveCheckpointOptions{.safe_serialization = options.safe_serialization,
                                                             .save_on_each_node = project.save_on_each_node,
                                                             .in_shards = preparation_.saves_shards(),
                                                             .hooks = registry_.save_hooks.all(),
                                                             .add_files = options.add_files},
                                       options.background ? &to_disk_.copies : nullptr);
  const int limit = project.automatic_checkpoint_naming ? project.total_limit.value_or(0) : 0;
  const int iteration = project.iteration;
  const auto finish = [=, snapshots = snapshots_, path = without_trailing_slash(absolute_path(target)),
                       on_saved = options.on_saved] {
    // A restart has to know a new folder as soon as it has its name. One that is replaced holds the state
    // before until then.
    const bool is_new = !fs::exists(path);
    const auto note = [&] {
      if (snapshots.is_on()) snapshots.note_on_disk(number, path, writing);
    };
    save->finish(writing, {[&](const fs::path& /*unnamed*/) {
                   if (is_new) note();
                 }});
    if (limit > 0) remove_oldest(path.parent_path(), static_cast<std::size_t>(limit), iteration, writing);
    together(writing, [&] {
      if (!is_new) note();
      if (on_saved) on_saved();
    });
  };
  if (options.background) {
    to_disk_.thread.start(finish);
  } else {
    finish();
  }
  ++project.iteration;
  return target;
}

void Checkpointing::save_state(InMemory /*where*/, const std::optional<fs::path>& disk,
                               const SaveStateOptions& options) {
  const ProgressSection section(Section::saving);
  const SavingProcesses processes = processes_of(state_);
  const fs::path numbered = numbered_folder();
  if (numbered.empty() && !disk) refuse_without_folder("save_state(in_memory)");
  if (!snapshots_.is_on()) return warn_once("nothing is saved in memory: start with --memory-checkpoints");
  to_memory_.thread.wait();
  const int iteration = disk ? 0 : next_iteration(processes);
  const fs::path later =
      without_trailing_slash(absolute_path(disk ? *disk : numbered_checkpoint(numbered, iteration)));
  // What may not go to the disk is of no use in memory.
  const auto require_new_folder = [&] {
    if (processes.is_local_main()) folder_to_save(numbered, iteration);
  };
  if (!disk) together(processes, require_new_folder);
  const CheckpointContent saved = content();
  const std::int64_t number = snapshots_.next_number(processes);
  const SavingProcesses writing = processes_beside_training(to_memory_);
  // On several machines each has all of the state: any of them may be lost.
  const bool one_machine = processes.num_local == state_.num_processes();
  const auto finish = [=, snapshots = snapshots_, on_saved = options.on_saved](CheckpointSave& save) {
    save.finish(writing, snapshots.last_steps(number, later, writing));
    together(writing, [&] {
      snapshots.make_room(number, writing);
      if (on_saved) on_saved();
    });
  };
  const auto or_warn = [this](const auto& step) {
    try {
      step();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::system) throw;
      warn_once(std::string("a state was not saved in memory: ") + error.what());
    }
  };
  or_warn([&] {
    const auto save = std::make_shared<CheckpointSave>(
        snapshots_.folder_of(number), saved, processes,
        SaveCheckpointOptions{.safe_serialization = options.safe_serialization,
                              .save_on_each_node = true,
                              .buffers_of_main = !one_machine,
                              .in_shards = one_machine && preparation_.saves_shards(),
                              .hooks = registry_.save_hooks.all(),
                              .add_files = options.add_files},
        &to_memory_.copies);
    to_memory_.thread.start([=, this] {
      or_warn([&] {
        finish(*save);
        has_warned_ = false;  // what fails after this one is told again
      });
    });
  });
}

void Checkpointing::warn_once(const std::string& text) {
  if (!has_warned_.exchange(true)) warn(processes_of(state_), text);
}

void Checkpointing::load(const fs::path& folder) {
  const Prepared& prepared = preparation_.prepared();
  CheckpointContent loaded = content_of(prepared, registry_.objects, state_.num_processes());
  if (any_is_sharded(prepared)) loaded.loading_group = state_.process_group();
  const auto step = load_checkpoint(folder, loaded, state_.process_index(), registry_.load_hooks.all());
  if (step) prepared.gradients->resume(*step);
  const fs::path numbered = numbered_folder();
  if (!numbered.empty()) preparation_.options().project.iteration = static_cast<int>(next_number(numbered));
}

void Checkpointing::load_state(const std::optional<fs::path>& folder) {
  wait_for_save();
  if (folder) return load(*folder);
  if (resume()) return;
  const fs::path numbered = numbered_folder();
  if (numbered.empty()) refuse_without_folder("load_state");
  load(newest_checkpoint(numbered));
}

bool Checkpointing::resume() {
  wait_for_save();
  if (!snapshots_.is_on()) return false;
  const auto newest = snapshots_.newest(processes_of(state_));
  if (newest) load(*newest);
  return newest.has_value();
}

HookHandle Checkpointing::register_save_state_pre_hook(SaveStatePreHook hook) {
  return registry_.save_hooks.add(std::move(hook));
}

HookHandle Checkpointing::register_load_state_pre_hook(LoadStatePreHook hook) {
  return registry_.load_hooks.add(std::move(hook));
}

bool Checkpointing::should_save_model() const {
  return processes_of(state_).writes_shared(preparation_.options().project.save_on_each_node);
}

void Checkpointing::save_model(const torch::nn::Module& module, const fs::path& path,
                               std::string_view max_shard_size) const {
  const std::uint64_t max_bytes = parse_byte_size(max_shard_size, "max_shard_size");
  const OrderedTensors state = with_full_values(ordered_state_of(module), should_save_model());
  if (!should_save_model()) return;
  if (path.empty()) refuse_without_folder("save_model");
  if (path.extension() == ".safetensors") {
    require_parent(path);
    write_model_file(state, path);
  } else {
    write_weights(state, path, max_bytes);
  }
}

NamedTensors Checkpointing::state_dict(const torch::nn::Module& module) const {
  const OrderedTensors state = with_full_values(ordered_state_of(module), state_.is_main_process());
  return {state.begin(), state.end()};
}

void Checkpointing::save(const PtValue& value, const fs::path& file) const {
  if (!should_save_model()) return;
  require_parent(file);
  write_pt_file(file, value);
}

IncompatibleKeys Checkpointing::load_model(torch::nn::Module& module, const fs::path& path,
                                           bool strict) const {
  if (const fs::path shards = folder_of_model_shards(path, 0); !shards.empty()) {
    const bool is_sharded = preparation_.sharded_module(module) != nullptr;
    const SavingProcesses loading{.index = state_.process_index(),
                                  .group = is_sharded ? state_.process_group() : nullptr};
    const auto read = [&] {
      PlannedModel planned;
      together(loading, [&] { planned = plan_model_shards(module, shards, strict); });
      return planned;
    };
    const PlannedModel planned = read_unreplaced({path, shards}, read, on_any(loading));
    planned.load();
    return planned.keys;
  }
  return acc::load_state(module, read_weights(path), path, strict);
}

}  // namespace acc::detail
