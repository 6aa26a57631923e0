// SPDX-License-Identifier: Apache-2.0
// The folder of a state in memory: what it says of itself, and its list of checksums, which the first byte
// makes right or leaves as it is. And the folder of a training: its name, the first line, and those in it.
#include "acc/formats/saved_states.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "acc/formats/checksums.hpp"
#include "fuzz/promise.hpp"

namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

bool is_name(std::string_view line) {
  constexpr std::size_t kLongest = 255;
  return !line.empty() && line.size() <= kLongest && line != "." && line != ".." &&
         line.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

// Names that begin as a note's does are files, others folders.
void fill(const fs::path& memory, std::string_view text) {
  fs::path folder = memory;
  std::error_code ignored;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!is_name(line)) continue;
    const bool is_note = folder != memory && line.starts_with("on_disk");
    is_note ? write(folder / line, "/disk/state") : void(fs::create_directories(folder / line, ignored));
    if (folder == memory) folder /= line;
  }
}

void check_trainings(const fs::path& memory) {
  for (const acc::SavedStates& training : acc::states_of_trainings(memory)) {
    const std::vector<acc::SavedState> states = training.all();
    for (const acc::SavedState& state : states) {
      fuzz::require(state.number >= 0 && state.number <= acc::kMaxStateNumber, "a state has a number");
      fuzz::require(!state.in_memory || state.folder == training.snapshot(state.number),
                    "a state in memory is in the folder of its number");
    }
    training.remove_leftovers();
    fuzz::require(training.all() == states, "what is hidden is no state");
    training.keep_newest(1);
    fuzz::require(training.all().size() <= 2 && training.all().empty() == states.empty(),
                  "one state in memory and one on a disk stay");
    training.remove_after(-1);
    fuzz::require(training.all().empty(), "no state stays of those that were saved after a number");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fs::path kFolder = "/dev/shm/acc-fuzz-state-" + std::to_string(::getpid());
  std::string_view text = fuzz::text_of(data, size);
  fuzz::Choices choices(text);
  const bool has_checksum = choices.below(4) != 0;
  fs::create_directory(kFolder);
  write(kFolder / "snapshot.json", text);
  const auto record = fuzz::value_or_error([&] { return acc::read_snapshot_record(kFolder); });
  if (record) {
    acc::write_snapshot_record(kFolder, *record);
    fuzz::require(acc::read_snapshot_record(kFolder) == *record, "a record is written as read");
  }
  const fs::path list = kFolder / "checksums_0.json";
  const std::string_view line = text.substr(0, text.find('\n'));
  write(list, line);
  write(list, has_checksum ? std::string(line) + "\n" + acc::checksum_of(list) + "\n" : std::string(text));
  const std::string damage = acc::damage_in(kFolder);
  fuzz::require(damage == acc::printable(damage), "damage is told in words that move no cursor", damage);
  acc::write_checksums(kFolder, {});
  fuzz::require(acc::damage_in(kFolder).empty(), "what was written is whole");
  fill(kFolder / "memory", text);
  check_trainings(kFolder / "memory");
  fs::remove_all(kFolder);
  return 0;
}
