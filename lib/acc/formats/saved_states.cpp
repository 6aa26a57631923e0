// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/saved_states.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecord = "snapshot.json";
constexpr std::string_view kSnapshot = "snapshot_";
constexpr std::string_view kOnDisk = "on_disk_";

std::optional<std::int64_t> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  const std::string_view digits = name.substr(prefix.size());
  const auto number = parse_integer(digits);
  const bool is_state = number && *number >= 0 && *number <= kMaxStateNumber;
  return is_state && std::to_string(*number) == digits ? number : std::nullopt;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
  return paths;
}

// Never visible in part, but for its name's dot.
void remove_whole(const fs::path& path) {
  const fs::path hidden = path.parent_path() / ("." + path.filename().string() + ".gone");
  std::error_code error;
  fs::rename(path, hidden, error);
  fs::remove_all(error ? path : hidden, error);
}

// It goes into JSON, here and between machines.
void require_utf8(const fs::path& folder) {
  if (is_utf8(folder.string())) return;
  throw Error({.what = "is not UTF-8, which the folder of a state in memory has to be",
               .where = folder.string(),
               .hint = "rename it, or start without --memory-checkpoints"});
}

fs::path on_disk_file(const fs::path& folder, std::int64_t number) {
  return folder / fmt::format("{}{}", kOnDisk, number);
}

// Nothing of one that is being removed, and of one that add_on_disk() has not written.
std::optional<std::string> note_at(const fs::path& file) try {
  const std::string path = read_file(file);
  const bool is_path = path.starts_with('/') && path.find('\0') == std::string::npos && is_utf8(path);
  return is_path ? std::optional(path) : std::nullopt;
} catch (const Error&) {
  return {};
}

constexpr std::string_view kTraining = "training_";

std::string name_of(const TrainingNumber& training) {
  return fmt::format("{}{}_{}", kTraining, training.accelerator, training.training);
}

// Another spelling, or a number that an int does not hold, is none of a training.
std::optional<TrainingNumber> training_of(const std::string& name) {
  const std::size_t between = name.rfind('_');
  if (!name.starts_with(kTraining) || between < kTraining.size()) return {};
  const auto accelerator = parse_integer(name.substr(kTraining.size(), between - kTraining.size()));
  const auto training = parse_integer(name.substr(between + 1));
  if (!accelerator || !training || *accelerator < 0 || *training < 0) return {};
  const TrainingNumber number = {.accelerator = static_cast<int>(*accelerator),
                                 .training = static_cast<int>(*training)};
  return name == name_of(number) ? std::optional(number) : std::nullopt;
}

}  // namespace

void write_snapshot_record(const fs::path& folder, const SnapshotRecord& record) {
  require_utf8(record.disk);
  const nlohmann::json fields = {{"id", record.id}, {"disk", record.disk.string()}};
  replace_file(folder / kRecord, fields.dump() + "\n");
}

SnapshotRecord read_snapshot_record(const fs::path& folder) {
  const fs::path file = folder / kRecord;
  try {
    const auto fields = nlohmann::json::parse(read_file(file));
    const std::string id = fields.at("id");
    if (id.empty()) refuse_file(file, "is damaged");
    return {.id = id, .disk = fs::path(fields.at("disk").get<std::string>())};
  } catch (const nlohmann::json::exception&) {
    refuse_file(file, "is damaged");
  }
}

std::vector<SavedState> SavedStates::all() const {
  std::vector<SavedState> states;
  for (const fs::path& path : entries_of(folder_)) {
    const std::string name = path.filename().string();
    if (const auto number = number_after(name, kSnapshot))
      states.push_back({.number = *number, .folder = path});
    const auto on_disk = number_after(name, kOnDisk);
    const auto note = on_disk ? note_at(path) : std::nullopt;
    if (note) states.push_back({.number = *on_disk, .folder = *note, .in_memory = false});
  }
  std::ranges::sort(states, std::greater(), &SavedState::number);
  return states;
}

fs::path SavedStates::snapshot(std::int64_t number) const {
  return folder_ / fmt::format("{}{}", kSnapshot, number);
}

void SavedStates::add_on_disk(std::int64_t number, const fs::path& folder) const {
  require_utf8(folder);
  replace_file(on_disk_file(folder_, number), folder.string());
}

void SavedStates::keep_newest(std::size_t count) const {
  std::size_t snapshots = 0;
  std::size_t notes = 0;
  for (const SavedState& state : all()) {
    std::size_t& count_of_kind = state.in_memory ? snapshots : notes;
    if (count_of_kind >= count)
      remove_whole(state.in_memory ? state.folder : on_disk_file(folder_, state.number));
    else
      ++count_of_kind;
  }
}

void SavedStates::remove_after(std::int64_t number) const {
  for (const SavedState& state : all())
    if (state.number > number)
      remove_whole(state.in_memory ? state.folder : on_disk_file(folder_, state.number));
}

void SavedStates::remove_leftovers() const {
  std::error_code error;
  for (const fs::path& path : entries_of(folder_))
    if (path.filename().string().starts_with('.')) fs::remove_all(path, error);
}

SavedStates states_of_training(const fs::path& memory, const TrainingNumber& training) {
  return SavedStates(memory / name_of(training));
}

std::vector<SavedStates> states_of_trainings(const fs::path& memory) {
  std::map<TrainingNumber, fs::path> trainings;
  for (const fs::path& path : entries_of(memory))
    if (const auto training = training_of(path.filename().string())) trainings[*training] = path;
  std::vector<SavedStates> states;
  for (auto& [number, path] : trainings) states.emplace_back(std::move(path));
  return states;
}

}  // namespace acc
