// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/state_agreement.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/formats/checksums.hpp"
#include "acc/formats/state_messages.hpp"
#include "acc/runtime/checkpoint/file_transfer.hpp"
#include "acc/runtime/checkpoint/folder_replacement.hpp"
#include "acc/runtime/comm/operations.hpp"

namespace acc::detail {
namespace {

namespace fs = std::filesystem;
using Tell = std::function<void(const std::string& line)>;

std::vector<std::string> texts_of_all(const std::string& text, const SavingProcesses& processes) {
  return gather_texts({text}, processes.group.get());
}

void tell_damage(const std::string& damage, const Tell& tell) {
  tell("a state in memory is damaged: " + damage);
}

std::vector<StateCandidate> known_to_this_machine(const SavedStates& states, const Tell& tell) {
  std::vector<StateCandidate> candidates;
  for (const SavedState& state : states.all()) {
    try {
      const std::string id = state.in_memory ? read_snapshot_record(state.folder).id : "";
      candidates.push_back(
          {.number = state.number, .id = id, .disk = state.in_memory ? "" : state.folder.string()});
    } catch (const Error& damage) {
      tell_damage(damage.what(), tell);
    }
  }
  return candidates;
}

// The newest first, the same on all processes.
std::vector<StateCandidate> candidates_of_all(const SavedStates& states, const SavingProcesses& processes,
                                              const Tell& tell) {
  std::vector<StateCandidate> known;
  if (processes.is_local_main()) known = known_to_this_machine(states, tell);
  std::vector<StateCandidate> candidates;
  int process = 0;
  for (const std::string& text : texts_of_all(format_candidates(known), processes))
    std::ranges::move(parse_candidates(text, process++), std::back_inserter(candidates));
  std::ranges::sort(candidates, std::greater());
  const auto repeated = std::ranges::unique(candidates);
  candidates.erase(repeated.begin(), repeated.end());
  return candidates;
}

struct Lack {
  // Why this process cannot load the state; empty: it can.
  std::string reason = {};
  bool is_damage = false;
};

// Throws nothing, since the others wait for the answer. On a machine of several processes only the one that
// checks the record knows that it is damaged.
Lack lack_of(const StateCandidate& candidate, const fs::path& folder, const SavingProcesses& processes) try {
  if (candidate.id.empty()) {
    std::error_code error;
    const bool is_there = fs::is_directory(complete_folder(candidate.disk), error);
    return {.reason = is_there ? "" : candidate.disk + " is not there"};
  }
  if (!fs::exists(folder)) return {.reason = "is not there"};
  const std::string damage = damage_in(folder, share_on_machine(processes));
  if (!damage.empty()) return {.reason = damage, .is_damage = true};
  return {.reason = read_snapshot_record(folder).id == candidate.id ? "" : "is another save"};
} catch (const std::exception& damage) {
  return {.reason = damage.what(), .is_damage = !candidate.id.empty()};
}

// The machines of which a process lacks something.
std::set<int> machines_without(const std::vector<std::string>& lacks, const std::vector<int>& machines) {
  std::set<int> without;
  for (std::size_t i = 0; i < lacks.size(); ++i)
    if (!lacks[i].empty()) without.insert(machines[i]);
  return without;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (!entry.is_directory()) names.push_back(entry.path().lexically_relative(folder).string());
  return names;
}

// Of the files that the process `from` has.
std::vector<std::string> names_of_sender(const fs::path& folder, int from, const SavingProcesses& processes) {
  std::string text;
  const std::exception_ptr unread = failure_of([&] {
    if (processes.index == from) text = format_file_names(names_in(folder));
  });
  return parse_file_names(broadcast_text(text, from, processes.group.get(), unread), from);
}

// Writes the folder where `receives`. An error there, whatever stands in the way, is that of all, when nobody
// waits for a piece any more.
void copy_to_machines(const fs::path& folder, int from, bool receives, const SavingProcesses& processes) {
  const std::vector<std::string> names = names_of_sender(folder, from, processes);
  std::optional<FolderReplacement> replacement;
  std::exception_ptr failure = failure_of([&] {
    if (!receives) return;
    replacement.emplace(folder, [](const std::string&) { return true; });
    replacement->begin();
  });
  const bool writes = receives && !failure;
  const std::exception_ptr unwritten = send_files(
      names, folder, from, processes,
      [&](const std::string& name) { return writes ? replacement->temporary() / name : fs::path(); });
  if (!failure) failure = unwritten;
  together(
      processes,
      [&] {
        if (failure) std::rethrow_exception(failure);
        if (replacement) replacement->publish();
      },
      [&] {
        if (replacement) replacement->abandon();
      });
}

// Whether all processes can load it, where needed after a machine that has it has given it to the others.
bool is_for_all(const StateCandidate& candidate, const fs::path& folder, const std::vector<int>& machines,
                const SavingProcesses& processes, const Tell& tell) {
  const Lack lack = lack_of(candidate, folder, processes);
  if (lack.is_damage) tell_damage(lack.reason, tell);
  const std::set<int> without = machines_without(texts_of_all(lack.reason, processes), machines);
  if (without.empty()) return true;
  const auto source = std::ranges::find_if(machines, [&](int machine) { return !without.contains(machine); });
  if (candidate.id.empty() || source == machines.end()) return false;
  const bool receives = processes.is_local_main() && without.contains(processes.machine());
  copy_to_machines(folder, *source, receives, processes);
  const Lack left = lack_of(candidate, folder, processes);
  return machines_without(texts_of_all(left.reason, processes), machines).empty();
}

}  // namespace

StateNumbering agree_on_numbering(const SavedStates& states, const std::string& run_id,
                                  const SavingProcesses& processes) {
  const std::vector<SavedState> all = states.all();
  const std::string sent_id = broadcast_text(processes.is_main() ? run_id : "", 0, processes.group.get());
  StateNumbering numbering{.run_id = parse_run_id(sent_id, 0)};
  const std::string next = std::to_string(all.empty() ? 0 : all.front().number + 1);
  int process = 0;
  for (const std::string& number : texts_of_all(next, processes))
    numbering.next = std::max(numbering.next, parse_sent_number(number, {.max = kMaxStateNumber}, process++));
  return numbering;
}

std::optional<SavedState> newest_common_state(const SavedStates& states, const SavingProcesses& processes,
                                              const std::function<void(const std::string& line)>& tell) {
  const std::vector<int> machines = machines_of(processes);
  for (const StateCandidate& candidate : candidates_of_all(states, processes, tell)) {
    const bool in_memory = !candidate.id.empty();
    const fs::path folder = in_memory ? states.snapshot(candidate.number) : fs::path(candidate.disk);
    if (is_for_all(candidate, folder, machines, processes, tell))
      return SavedState{.number = candidate.number, .folder = folder, .in_memory = in_memory};
  }
  return {};
}

}  // namespace acc::detail
