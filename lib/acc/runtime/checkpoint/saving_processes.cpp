// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/saving_processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/formats/state_messages.hpp"
#include "acc/runtime/checkpoint/folder_replacement.hpp"
#include "acc/runtime/comm/operations.hpp"

namespace acc::detail {

void together(const SavingProcesses& processes, const std::function<void()>& function,
              const std::function<void()>& clean_up) {
  const auto or_clean_up = [&](const auto& step) {
    try {
      return step();
    } catch (...) {
      clean_up();
      throw;
    }
  };
  if (!processes.group) return or_clean_up(function);
  std::exception_ptr local_error;
  std::string text;
  try {
    function();
  } catch (const std::exception& error) {
    local_error = std::current_exception();
    text = error.what();
    if (text.empty()) text = "failed";
  }
  const std::vector<std::string> texts =
      or_clean_up([&] { return gather_texts({text}, processes.group.get()); });
  const auto failed =
      std::ranges::find_if(texts, [](const std::string& message) { return !message.empty(); });
  if (failed == texts.end()) return;
  clean_up();
  gather_texts({""}, processes.group.get());
  if (local_error) std::rethrow_exception(local_error);
  throw Error({.kind = ErrorKind::system,
               .what = *failed,
               .where = fmt::format("process {}", failed - texts.begin())});
}

std::vector<int> machines_of(const SavingProcesses& processes) {
  std::vector<int> machines;
  for (const std::string& machine :
       gather_texts({std::to_string(processes.machine())}, processes.group.get())) {
    // The first process of a machine has the lowest rank.
    const auto process = static_cast<int>(machines.size());
    machines.push_back(static_cast<int>(parse_sent_number(machine, {.max = process}, process)));
  }
  return machines;
}

int number_of_main(int number, const SavingProcesses& processes) {
  const NumberRange numbers{.min = std::numeric_limits<int>::min(), .max = std::numeric_limits<int>::max()};
  const std::string text = broadcast_text(std::to_string(number), 0, processes.group.get());
  return static_cast<int>(parse_sent_number(text, numbers, 0));
}

std::function<bool(bool)> on_any(const SavingProcesses& processes) {
  return [group = processes.group](bool here) {
    const std::vector<std::string> texts = gather_texts({here ? "yes" : ""}, group.get());
    return std::ranges::any_of(texts, [](const std::string& message) { return !message.empty(); });
  };
}

namespace {

bool leads_other_machine(const SavingProcesses& processes) {
  return processes.is_local_main() && !processes.is_main();
}

}  // namespace

// Machines may or may not share the file system: after the main process, the first process of each other
// machine acts. Which of the two is the case, it learns by creating the folder: a leftover must be gone then,
// and what a client of a shared file system has cached of names is no answer.
void begin_together(FolderReplacement& folder, const SavingProcesses& processes) {
  together(processes, [&] {
    if (processes.is_main()) folder.remove_leftover();
  });
  together(processes, [&] {
    if (leads_other_machine(processes)) folder.remove_leftover();
  });
  together(processes, [&] {
    if (processes.is_main()) folder.begin();
  });
  fill_together(folder, processes, [&] {
    if (leads_other_machine(processes)) folder.begin_if_absent();
  });
}

void fill_together(FolderReplacement& folder, const SavingProcesses& processes,
                   const std::function<void()>& function) {
  together(processes, function, [&] {
    if (processes.is_local_main()) folder.abandon();
  });
}

void publish_together(FolderReplacement& folder, const SavingProcesses& processes) {
  fill_together(folder, processes, [&] {
    if (processes.is_main()) folder.publish();
  });
  fill_together(folder, processes, [&] {
    if (leads_other_machine(processes) && folder.has_begun()) folder.publish();
  });
}

}  // namespace acc::detail
