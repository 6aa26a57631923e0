// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/memory_snapshots.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <random>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/short_size.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/checkpoint/snapshot_seal.hpp"
#include "acc/runtime/checkpoint/state_agreement.hpp"

namespace acc::detail {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "ACC_MEMORY_FOLDER";
constexpr const char* kSize = "ACC_MEMORY_SIZE";

// While one is written, the two newest complete ones are there.
constexpr std::size_t kKept = 2;

std::uint64_t bytes_in(const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

void say(const std::string& line) {
  std::fprintf(stderr, "acc: %s\n", line.c_str());
}

void tell_size(const fs::path& snapshot) {
  const std::uint64_t bytes = bytes_in(snapshot);
  const std::uint64_t needed = (kKept + 1) * bytes;
  const auto size = parse_integer(Environment::of_process().get(kSize));
  const bool lacks = size && static_cast<std::uint64_t>(*size) < needed;
  say(fmt::format("a state in memory takes {}; the folder needs {} for {} of them{}", short_size(bytes),
                  short_size(needed), kKept + 1, lacks ? ": start with a larger --memory-checkpoints" : ""));
}

}  // namespace

MemorySnapshots::MemorySnapshots() : memory_(Environment::of_process().get(kFolder)) {
  static std::atomic<int> accelerators = 0;
  training_.accelerator = accelerators++;
}

std::int64_t MemorySnapshots::next_number(const SavingProcesses& processes) {
  if (!next_) {
    std::random_device random;
    // Before the first save of these processes.
    together(processes, [&] {
      if (processes.is_local_main()) states().remove_leftovers();
    });
    const StateNumbering numbering =
        agree_on_numbering(states(), fmt::format("{:08x}{:08x}", random(), random()), processes);
    next_ = numbering.next;
    run_id_ = numbering.run_id;
  }
  return (*next_)++;
}

std::vector<std::function<void(const fs::path&)>> MemorySnapshots::last_steps(
    std::int64_t number, const fs::path& disk, const SavingProcesses& processes) const {
  return seal_of({.id = fmt::format("{}-{}", run_id_, number), .disk = disk}, processes);
}

void MemorySnapshots::make_room(std::int64_t number, const SavingProcesses& processes) const {
  if (!processes.is_local_main()) return;
  const SavedStates local_states = states();
  if (processes.is_main() && local_states.all().size() == 1) tell_size(local_states.snapshot(number));
  local_states.keep_newest(kKept);
  for (const SavedStates& training : states_of_trainings(memory_))
    if (training.folder() != local_states.folder()) training.keep_newest(1);
}

void MemorySnapshots::note_on_disk(std::int64_t number, const fs::path& folder,
                                   const SavingProcesses& processes) const {
  if (!processes.is_local_main()) return;
  try {
    states().add_on_disk(number, folder);
    states().keep_newest(kKept);
  } catch (const Error& error) {
    say(std::string("a restart will not know of ") + folder.string() + ": " + error.what());
  }
}

std::optional<fs::path> MemorySnapshots::newest(const SavingProcesses& processes) {
  next_.reset();
  const auto state = newest_common_state(states(), processes, say);
  if (!state) {
    if (!states().all().empty()) warn(processes, "none of the states that this job has saved can be loaded");
    return {};
  }
  together(processes, [&] {
    if (processes.is_local_main()) states().remove_after(state->number);
  });
  return state->folder;
}

void warn(const SavingProcesses& processes, const std::string& text) {
  if (processes.is_main()) say(text);
}

}  // namespace acc::detail
