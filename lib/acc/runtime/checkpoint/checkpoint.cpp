// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/checkpoint.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"
#include "acc/base/replacement.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/folder_replacement.hpp"
#include "acc/runtime/checkpoint/gathered_optimizer_state.hpp"
#include "acc/runtime/checkpoint/model_state.hpp"
#include "acc/runtime/checkpoint/model_weights.hpp"
#include "acc/runtime/checkpoint/optimizer_state.hpp"
#include "acc/runtime/checkpoint/parameter_names.hpp"
#include "acc/runtime/checkpoint/process_states.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/checkpoint/save_steps.hpp"
#include "acc/runtime/checkpoint/state_shards.hpp"

namespace acc {

namespace {

namespace fs = std::filesystem;

using Loads = std::vector<std::function<void()>>;

PtValue read_part(const fs::path& file) {
  if (!fs::exists(file)) {
    throw Error({.kind = ErrorKind::config,
                 .what = "is missing",
                 .where = file.string(),
                 .hint = "prepare the same objects as when the checkpoint was saved"});
  }
  return read_pt_file(file);
}

void plan_models(const fs::path& folder, const std::vector<torch::nn::Module*>& models, Loads& loads) {
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (const fs::path shards = detail::model_shards_in(folder, i); !shards.empty()) {
      loads.push_back(detail::plan_model_shards(*models[i], shards).load);
      continue;
    }
    const fs::path one = detail::model_file_in(folder, i);
    // The first model's weights may be in several files.
    const fs::path file = i == 0 && !fs::exists(one) ? folder : one;
    loads.push_back(detail::plan_model_load(*models[i], read_weights(file), file));
  }
}

void plan_optimizers(const fs::path& folder, const CheckpointContent& content, Loads& loads) {
  for (std::size_t i = 0; i < content.optimizers.size(); ++i) {
    const fs::path file = folder / detail::numbered_file("optimizer", i, ".bin");
    const fs::path shards = folder / detail::sharded_optimizer_folder(i);
    if (detail::is_in_shards(shards, file)) {
      loads.push_back(detail::plan_optimizer_shards(content, i, shards));
      continue;
    }
    PtValue state = detail::with_numbers(content, i, read_part(file), file.string());
    if (const auto sharded = content.sharded(i))
      state = detail::shard_of_optimizer_state(*sharded, state, file.string());
    loads.push_back(detail::plan_optimizer_load(*content.optimizers[i], state, file.string()));
  }
}

void plan_states(const fs::path& folder, const std::string& stem, const std::vector<Stateful>& objects,
                 Loads& loads) {
  for (std::size_t i = 0; i < objects.size(); ++i) {
    loads.emplace_back([load = objects[i].load_state,
                        state = read_part(folder / detail::numbered_file(stem, i, ".bin"))] { load(state); });
  }
}

// Optional: Python writes only the states of torchdata's loaders.
void plan_loaders(const fs::path& folder, const std::vector<Stateful>& loaders, Loads& loads) {
  if (fs::exists(folder / detail::numbered_file("dl_state_dict", 0, ".bin")))
    plan_states(folder, "dl_state_dict", loaders, loads);
}

void plan_registered(const fs::path& folder, const std::vector<Stateful>& objects, Loads& loads) {
  std::size_t saved = 0;
  while (fs::exists(folder / detail::custom_file(saved))) ++saved;
  if (saved != objects.size()) {
    throw Error(
        {.what = fmt::format("has {} registered objects, but {} are registered", saved, objects.size()),
         .where = folder.string(),
         .hint = "register_for_checkpointing the same objects as when it was saved"});
  }
  for (std::size_t i = 0; i < saved; ++i) {
    loads.emplace_back([load = objects[i].load_state, state = read_pt_file(folder / detail::custom_file(i))] {
      load(state);
    });
  }
}

void plan_buckets(const fs::path& folder, const std::vector<Stateful>& buckets, Loads& loads) {
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const fs::path file = folder / detail::numbered_file(detail::kBucketsStem, i, ".bin");
    if (!fs::exists(file)) continue;
    loads.emplace_back([load = buckets[i].load_state, state = read_pt_file(file)] { load(state); });
  }
}

const PtValue& field(const PtValue& state, const char* name, const fs::path& file) {
  if (const PtValue* value = state.find(name)) return *value;
  throw Error({.kind = ErrorKind::config, .what = fmt::format("has no '{}'", name), .where = file.string()});
}

// When n processes saved and m load, each loads the gradients of every m-th saved process, scaled by m / n:
// the mean over all processes stays the same.
void plan_gradients(const fs::path& folder, const CheckpointContent& content, int process, Loads& loads) {
  fs::path file = folder / detail::gradients_file(process);
  if (!fs::exists(file)) file = folder / detail::gradients_file(0);
  if (!fs::exists(file)) {
    // There were none: those of a step that this process has begun do not go into the next one.
    loads.push_back(detail::plan_gradients_load(content.models, {}, 1));
    return;
  }
  const int saved =
      static_cast<int>(field(read_pt_file(file), detail::kNumProcesses, file).number().value_or(0));
  if (saved < 1)
    throw Error(
        {.kind = ErrorKind::config, .what = "has an invalid number of processes", .where = file.string()});
  std::vector<PtValue> parts;
  for (int part = process; part < saved; part += content.num_processes) {
    const fs::path gradients = folder / detail::gradients_file(part);
    parts.push_back(field(read_part(gradients), detail::kGradients, gradients));
  }
  loads.push_back(
      detail::plan_gradients_load(content.models, parts, static_cast<double>(content.num_processes) / saved));
}

// What a checkpoint was read for: nothing is changed before everything was read and, as far as possible,
// checked.
struct CheckpointLoads {
  Loads loads = {};
  PtValue random_states = {};
  fs::path random_file = {};
  // Whether the random states are those of this process.
  bool own_random_states = false;
};

CheckpointLoads plan_loads(const fs::path& folder, const CheckpointContent& content, int process,
                           const std::vector<LoadStatePreHook>& hooks) {
  const fs::path complete = detail::complete_folder(folder);
  if (!fs::is_directory(complete)) {
    throw Error({.what = "there is no such folder", .where = folder.string()});
  }
  std::vector<torch::nn::Module*> models = content.models;
  for (const LoadStatePreHook& hook : hooks) hook(models, complete);

  CheckpointLoads planned;
  plan_models(complete, models, planned.loads);
  plan_optimizers(complete, content, planned.loads);
  plan_states(complete, "scheduler", content.schedulers, planned.loads);
  plan_loaders(complete, content.loaders, planned.loads);
  if (content.scaler) {
    planned.loads.emplace_back([load = content.scaler->load_state,
                                state = read_part(complete / detail::kScalerFile)] { load(state); });
  }
  plan_registered(complete, content.registered, planned.loads);
  plan_buckets(complete, content.gradient_buckets, planned.loads);
  plan_gradients(complete, content, process, planned.loads);
  planned.own_random_states = fs::exists(complete / detail::random_states_file(process));
  planned.random_file = complete / detail::random_states_file(planned.own_random_states ? process : 0);
  if (fs::exists(planned.random_file)) planned.random_states = read_pt_file(planned.random_file);
  return planned;
}

}  // namespace

void save_checkpoint(const fs::path& folder, const CheckpointContent& content,
                     const SavingProcesses& processes, const SaveCheckpointOptions& options) {
  detail::CheckpointSave(folder, content, processes, options).finish(processes);
}

std::optional<std::int64_t> load_checkpoint(const fs::path& folder, const CheckpointContent& content,
                                            int process, const std::vector<LoadStatePreHook>& hooks) {
  const SavingProcesses loading{.index = process, .group = content.loading_group};
  const auto read = [&] {
    CheckpointLoads planned;
    detail::together(loading, [&] { planned = plan_loads(folder, content, process, hooks); });
    return planned;
  };
  const CheckpointLoads planned = read_unreplaced({folder}, read, detail::on_any(loading));

  for (const auto& load : planned.loads) load();
  const PtValue& states = planned.random_states;
  if (planned.own_random_states) return detail::load_random_states(states, planned.random_file.string());
  const PtValue* step = states.find("step");
  return step != nullptr && step->number() ? std::optional(static_cast<std::int64_t>(*step->number()))
                                           : std::nullopt;
}

}  // namespace acc
