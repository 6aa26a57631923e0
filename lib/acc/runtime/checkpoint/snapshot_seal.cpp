// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/snapshot_seal.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

#include "acc/base/text.hpp"
#include "acc/formats/checksums.hpp"
#include "acc/formats/state_messages.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/file_transfer.hpp"
#include "acc/runtime/comm/operations.hpp"

namespace acc::detail {
namespace {

namespace fs = std::filesystem;

// Of the files that one process writes for all of its machine.
ChecksumsByName shared_checksums(const fs::path& folder) {
  ChecksumsByName checksums;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    if (!entry.is_directory() && !is_of_one_process(name)) checksums[name] = checksum_of(entry.path());
  }
  return checksums;
}

bool has(const ChecksumsByName& machine, const std::string& name, const std::string& checksum) {
  const auto file = machine.find(name);
  return file != machine.end() && file->second == checksum;
}

// The main process's first. Of the others only the first of each machine has sent some.
std::vector<ChecksumsByName> checksums_of_machines(const std::vector<std::string>& texts) {
  std::vector<ChecksumsByName> machines;
  for (int process = 0; process < std::ssize(texts); ++process) {
    const std::string& text = texts[static_cast<std::size_t>(process)];
    if (process == 0 || !text.empty()) machines.push_back(parse_checksums(text, process));
  }
  return machines;
}

// What the main process wrote is what is saved: the objects of a program may differ between processes.
void spread_shared_files(const fs::path& folder, const SavingProcesses& processes) {
  ChecksumsByName checksums;
  std::string text;
  const auto unread = failure_of([&] {
    if (!processes.is_local_main()) return;
    checksums = shared_checksums(folder);
    text = format_checksums(checksums);
  });
  const std::vector<ChecksumsByName> machines =
      checksums_of_machines(gather_texts({text}, processes.group.get(), unread));
  const ChecksumsByName& of_main = machines.front();

  std::vector<std::string> names;
  for (const auto& file : of_main)
    if (!std::ranges::all_of(machines,
                             [&](const auto& machine) { return has(machine, file.first, file.second); }))
      names.push_back(file.first);
  const auto unwritten = send_files(names, folder, 0, processes, [&](const std::string& name) {
    const bool lacks = processes.is_local_main() && !has(checksums, name, of_main.at(name));
    return lacks ? folder / name : fs::path();
  });
  if (unwritten) std::rethrow_exception(unwritten);
  for (const auto& file : checksums)
    if (!of_main.contains(file.first)) fs::remove(folder / file.first);
}

// Those that this process alone writes.
std::vector<std::string> own_files_of(int process) {
  return {random_states_file(process), gradients_file(process)};
}

std::vector<std::string> own_files_in(const fs::path& folder, int process) {
  std::vector<std::string> names = own_files_of(process);
  std::erase_if(names, [&](const std::string& name) { return !fs::exists(folder / name); });
  return names;
}

std::vector<std::string> parse_own_files(const std::string& text, int process) {
  std::vector<std::string> names = parse_file_names(text, process);
  const std::vector<std::string> possible = own_files_of(process);
  if (!std::ranges::all_of(names, [&](const std::string& name) { return contains(possible, name); }))
    refuse_message(process, "names of its own files");
  return names;
}

// Ranks may be others after a restart, and a machine may be replaced.
void spread_own_files(const fs::path& folder, const SavingProcesses& processes) {
  const auto target_of = [&](const std::string& name) {
    std::error_code ignored;
    const bool lacks = processes.is_local_main() && !fs::exists(folder / name, ignored);
    return lacks ? folder / name : fs::path();
  };
  std::string names;
  const std::exception_ptr unread =
      failure_of([&] { names = format_file_names(own_files_in(folder, processes.index)); });
  const std::vector<std::string> texts = gather_texts({names}, processes.group.get(), unread);
  std::vector<std::vector<std::string>> of_all;
  for (const std::string& text : texts)
    of_all.push_back(parse_own_files(text, static_cast<int>(of_all.size())));
  std::exception_ptr failure;
  for (int process = 0; process < std::ssize(of_all); ++process) {
    const auto& files = of_all[static_cast<std::size_t>(process)];
    const auto unwritten = send_files(files, folder, process, processes, target_of);
    if (!failure) failure = unwritten;
  }
  if (failure) std::rethrow_exception(failure);
}

bool is_on_several_machines(const SavingProcesses& processes) {
  const std::vector<int> machines = machines_of(processes);
  return std::ranges::any_of(machines, [](int machine) { return machine != 0; });
}

}  // namespace

std::vector<std::function<void(const fs::path&)>> seal_of(const SnapshotRecord& record,
                                                          const SavingProcesses& processes) {
  // What fails in one step is known to all before the next, in which they wait for each other.
  return {[=](const fs::path& folder) {
            if (is_on_several_machines(processes)) spread_shared_files(folder, processes);
          },
          [=](const fs::path& folder) {
            if (is_on_several_machines(processes)) spread_own_files(folder, processes);
            if (processes.is_local_main()) write_snapshot_record(folder, record);
          },
          [=](const fs::path& folder) { write_checksums(folder, share_on_machine(processes)); }};
}

}  // namespace acc::detail
