// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/checkpointing.hpp"

#include "acc/base/byte_size.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/model_file.hpp"
#include "acc/runtime/checkpoint/prepared_content.hpp"
#include "acc/runtime/checkpoint/pt_writer.hpp"
#include "acc/runtime/checkpoint/weights_folder.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

SavingProcesses processes_of(const PartialState& state) {
  return {.index = state.process_index(),
          .local_index = state.local_process_index(),
          .group = state.process_group()};
}

[[noreturn]] void refuse_without_folder(const char* function) {
  throw Error({.what = "needs a folder",
               .where = function,
               .hint = "give one, or set project_dir and automatic_checkpoint_naming"});
}

// As torch.save: a folder that is missing is more often mistyped than meant to be made.
void require_parent(const fs::path& file) {
  const fs::path parent = resolved_path(file).parent_path();
  if (fs::is_directory(parent)) return;
  throw Error({.kind = ErrorKind::system,
               .what = "cannot be written: there is no folder " + parent.string(),
               .where = file.string(),
               .hint = "make the folder first"});
}

}  // namespace

fs::path Checkpointing::numbered_folder() {
  if (!preparation_.project().automatic_checkpoint_naming) return {};
  if (preparation_.project_dir().empty())
    throw Error({.what = "needs project_dir", .where = "automatic_checkpoint_naming"});
  return preparation_.project_dir() / "checkpoints";
}

// Those that were there stay until the new one is whole. Machines may share the folder or not.
void Checkpointing::make_room(const fs::path& folder, const SavingProcesses& processes) {
  const auto limit = preparation_.project().total_limit;
  if (!limit || *limit < 1) return;
  together(processes, [&] {
    if (processes.is_main()) keep_newest(folder, static_cast<std::size_t>(*limit));
  });
  if (processes.is_local_main() && !processes.is_main())
    keep_newest(folder, static_cast<std::size_t>(*limit));
}

fs::path Checkpointing::save_state(const std::optional<fs::path>& folder, bool safe_serialization) {
  const SavingProcesses processes = processes_of(state_);
  const Prepared& prepared = preparation_.prepared();
  ProjectOptions& project = preparation_.project();
  const fs::path numbered = numbered_folder();
  if (numbered.empty() && !folder) refuse_without_folder("save_state");
  fs::path place = folder.value_or(fs::path());
  if (!numbered.empty()) {
    place = numbered_checkpoint(numbered, project.iteration);
    together(processes, [&] {
      if (!processes.is_local_main()) return;
      folder_to_save(numbered, project.iteration);
      remove_leftovers(numbered);
    });
  }
  for (const PreparedModel& model : prepared.models) {
    if (model.ddp) model.ddp->settle_bucket_layout();
  }
  save_checkpoint(place, content_of(prepared, registry_.objects, state_.num_processes()), processes,
                  {.safe_serialization = safe_serialization,
                   .save_on_each_node = project.save_on_each_node,
                   .hooks = registry_.save_hooks.all()});
  if (!numbered.empty()) make_room(numbered, processes);
  ++project.iteration;
  return place;
}

void Checkpointing::load_state(const std::optional<fs::path>& folder) {
  const fs::path numbered = numbered_folder();
  if (numbered.empty() && !folder) refuse_without_folder("load_state");
  const fs::path place = folder ? *folder : newest_checkpoint(numbered);
  const Prepared& prepared = preparation_.prepared();
  const auto step = load_checkpoint(place, content_of(prepared, registry_.objects, state_.num_processes()),
                                    state_.process_index(), registry_.load_hooks.all());
  if (step) prepared.gradients->resume(*step);
  if (!numbered.empty()) preparation_.project().iteration = static_cast<int>(next_number(numbered));
}

HookHandle Checkpointing::register_save_state_pre_hook(SaveStatePreHook hook) {
  return registry_.save_hooks.add(std::move(hook));
}

HookHandle Checkpointing::register_load_state_pre_hook(LoadStatePreHook hook) {
  return registry_.load_hooks.add(std::move(hook));
}

void Checkpointing::save_model(const torch::nn::Module& module, const fs::path& place,
                               std::string_view max_shard_size) const {
  const std::uint64_t most = parse_byte_size(max_shard_size, "max_shard_size");
  if (!processes_of(state_).writes_shared(preparation_.project().save_on_each_node)) return;
  if (place.empty()) refuse_without_folder("save_model");
  if (place.extension() == ".safetensors") {
    require_parent(place);
    save_model_file(module, place);
  } else {
    save_weights(module, place, most);
  }
}

void Checkpointing::save(const PtValue& value, const fs::path& file) const {
  if (!processes_of(state_).writes_shared(preparation_.project().save_on_each_node)) return;
  require_parent(file);
  write_pt_file(file, value);
}

IncompatibleKeys Checkpointing::load_model(torch::nn::Module& module, const fs::path& place,
                                           bool strict) const {
  return acc::load_state(module, read_weights(place), place, strict);
}

}  // namespace acc
