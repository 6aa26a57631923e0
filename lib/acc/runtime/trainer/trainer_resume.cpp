// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/accelerator/settings_agreement.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/folder_replacement.hpp"
#include "acc/runtime/checkpoint/saving_processes.hpp"
#include "acc/runtime/trainer/trainer_base.hpp"
#include "acc/runtime/trainer/trainer_checkpoints.hpp"
#include "acc/runtime/trainer/training_record.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

}  // namespace

// The best model may have been evaluated after its checkpoint was saved.
void TrainerBase::note_saved(std::int64_t step) {
  checkpoints_.add_own(step);
  if (state_.best_global_step && checkpoints_.is_own(*state_.best_global_step))
    state_.best_model_checkpoint = checkpoints_.folder_of(*state_.best_global_step);
}

std::function<void(const fs::path&)> TrainerBase::state_writer(bool writes) {
  training_record_->set_saved_steps(checkpoints_.own_steps());
  state_.stateful_callbacks = callbacks_.states();
  return [this, writes](const fs::path& folder) {
    if (!writes) return;
    replace_file(folder / detail::kTrainingArgumentsFile, to_json(arguments_));
    replace_file(folder / detail::kTrainerStateFile, to_json(state_));
  };
}

void TrainerBase::save_checkpoint() {
  accelerator_->wait_for_save();  // the save before has ended
  const fs::path folder = checkpoints_.folder_of(state_.global_step);
  note_saved(state_.global_step);
  const bool writes = accelerator_->should_save_model();
  const auto write_state = state_writer(writes);
  if (writes) detail::remove_leftovers(arguments_.output_dir);
  // What an earlier training has there, as its optimizer, is none of this one's.
  if (writes && arguments_.save_only_model) {
    std::error_code missing;
    fs::remove(folder / detail::kTrainerStateFile, missing);  // first: a checkpoint without it is none
    detail::remove_checkpoint_files(folder);
  }
  accelerator_->wait_for_everyone();
  std::function<void()> rotation = [] {};
  if (arguments_.save_total_limit && writes)
    rotation = checkpoints_.rotation(*arguments_.save_total_limit, state_.best_model_checkpoint);
  if (arguments_.save_only_model) {
    save_weights(folder);
    write_state(folder);
    accelerator_->wait_for_everyone();
    rotation();
  } else {
    accelerator_->save_state(folder, {.background = arguments_.save_in_background,
                                      .add_files = write_state,
                                      .on_saved = std::move(rotation)});
  }
}

void TrainerBase::save_in_memory() {
  accelerator_->save_state(in_memory, checkpoints_.folder_of(state_.global_step),
                           {.add_files = state_writer(accelerator_->is_local_main_process())});
}

namespace {

std::string step_of(const fs::path& checkpoint) try {
  if (checkpoint.empty()) return "no checkpoint";
  const fs::path state = detail::complete_folder(checkpoint) / detail::kTrainerStateFile;
  return fmt::format("step {}", read_trainer_state(state).global_step);
} catch (const std::exception&) {
  return "no readable checkpoint";
}

}  // namespace

// On machines that share no folder processes may find different ones.
fs::path TrainerBase::checkpoint_to_resume(const std::string& choice) const {
  fs::path checkpoint;
  const auto missing = detail::failure_of([&] { checkpoint = checkpoints_.folder_to_resume(choice); });
  if (const auto steps = detail::find_difference(step_of(checkpoint), accelerator_->process_group().get())) {
    throw Error(
        {.kind = ErrorKind::config,
         .what =
             fmt::format("is {} on rank 0, and {} on rank {}", steps->first, steps->other, steps->other_rank),
         .where = "resume_from_checkpoint",
         .hint = "give all machines the same checkpoints: in a folder that they share, or as copies"});
  }
  if (missing) std::rethrow_exception(missing);
  return checkpoint;
}

bool TrainerBase::resume_from(const std::string& choice) {
  if (detail::is_newest(choice) && resume([&] { return accelerator_->resume(); })) {
    add_saved_checkpoints();  // the same job has the same output_dir
    return true;
  }
  const fs::path checkpoint = checkpoint_to_resume(choice);
  return !checkpoint.empty() && resume([&] {
    accelerator_->load_state(checkpoint);
    return true;
  });
}

namespace {

void require_optimizer(const fs::path& checkpoint) {
  if (fs::exists(checkpoint / detail::numbered_file("optimizer", 0, ".bin")) ||
      fs::exists(checkpoint / detail::sharded_optimizer_folder(0)))
    return;
  throw Error({.kind = ErrorKind::config,
               .what = "has no optimizer, so training cannot be resumed from it",
               .where = checkpoint.string(),
               .hint = "it may have been saved with save_only_model"});
}

}  // namespace

void TrainerBase::add_saved_checkpoints() {
  for (const std::int64_t step : training_record_->saved_steps()) checkpoints_.add_own(step);
}

bool TrainerBase::resume(const std::function<bool()>& load) {
  const bool is_local = state_.is_local_process_zero;
  const bool is_world = state_.is_world_process_zero;
  fs::path checkpoint;
  // Read as a part of the checkpoint: of the save of which everything else is.
  HookHandle hook = accelerator_->register_load_state_pre_hook(
      [&](std::vector<torch::nn::Module*>& /*models*/, const fs::path& folder) {
        TrainerState saved = read_trainer_state(folder / detail::kTrainerStateFile);
        require_optimizer(folder);
        state_ = std::move(saved);
        checkpoint = folder;
      });
  const auto remove = [](HookHandle* registered) { registered->remove(); };
  const std::unique_ptr<HookHandle, decltype(remove)> until_loaded(&hook, remove);
  if (!load()) return false;
  state_.is_local_process_zero = is_local;
  state_.is_world_process_zero = is_world;
  if (fs::path& best = state_.best_model_checkpoint; !best.empty() && !fs::exists(best)) {
    // The whole training may have been moved.
    best = checkpoint.parent_path() / without_trailing_slash(best).filename();
    if (!fs::exists(best)) {
      // Another one may become it.
      best.clear();
      state_.best_metric.reset();
      state_.best_global_step.reset();
    }
  }
  callbacks_.load_states(state_.stateful_callbacks);
  if (detail::is_same_folder(checkpoint, checkpoints_.folder_of(state_.global_step))) {
    checkpoints_.add_own(state_.global_step);
    add_saved_checkpoints();
  }
  return true;
}

}  // namespace acc
