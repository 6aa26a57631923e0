// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/checkpoint_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/checkpoint/folder_replacement.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint_";

std::optional<std::int64_t> number_of(const std::string& name, std::string_view prefix) {
  constexpr std::size_t kMaxDigits = 18;
  if (!name.starts_with(prefix)) return {};
  const std::string number = name.substr(prefix.size());
  const bool is_number = number.size() <= kMaxDigits && !number.empty() &&
                         number.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? parse_integer(number) : std::nullopt;
}

}  // namespace

namespace detail {

std::string numbered_file(const std::string& stem, std::size_t index, const std::string& ending) {
  return index == 0 ? stem + ending : fmt::format("{}_{}{}", stem, index, ending);
}

std::string random_states_file(int process) {
  return fmt::format("random_states_{}.pkl", process);
}

std::string gradients_file(int process) {
  return fmt::format("accumulated_gradients_{}.bin", process);
}

bool is_of_one_process(const std::string& name) {
  return name.starts_with("random_states_") || name.starts_with("accumulated_gradients_");
}

std::string custom_file(std::size_t index) {
  return fmt::format("custom_checkpoint_{}.pkl", index);
}

fs::path model_file_in(const fs::path& checkpoint, std::size_t model) {
  fs::path safe = checkpoint / numbered_file("model", model, ".safetensors");
  for (fs::path file : {safe, checkpoint / numbered_file("pytorch_model", model, ".bin"),
                        checkpoint / numbered_file("pytorch_model_fsdp", model, ".bin")}) {
    if (fs::exists(file)) return file;
    file += ".index.json";
    if (fs::exists(file)) return file;
  }
  return safe;
}

std::string sharded_model_folder(std::size_t index) {
  return fmt::format("pytorch_model_fsdp_{}", index);
}

std::string sharded_optimizer_folder(std::size_t index) {
  return fmt::format("optimizer_{}", index);
}

bool is_checkpoint_file(const std::string& name) {
  // Never destroyed: a thread may save while the process exits.
  static const std::regex& files = *new std::regex(
      R"((model|pytorch_model|pytorch_model_fsdp)(_\d+)?(-\d{5}-of-\d{5})?\.(safetensors|bin)(\.index\.json)?)"
      R"(|(optimizer|scheduler|sampler|dl_state_dict|gradient_buckets)(_\d+)?\.bin|scaler\.pt)"
      R"(|(pytorch_model_fsdp|optimizer)_\d+)"
      R"(|accumulated_gradients_\d+\.bin)"
      R"(|(random_states|custom_checkpoint)_\d+\.pkl)");
  return std::regex_match(name, files);
}

fs::path numbered_checkpoint(const fs::path& folder, std::int64_t number) {
  return folder / fmt::format("{}{}", kPrefix, number);
}

fs::path folder_to_save(const fs::path& folder, std::int64_t number) {
  const fs::path target = numbered_checkpoint(folder, number);
  if (fs::exists(target)) {
    throw Error({.what = "already exists",
                 .where = target.string(),
                 .hint = "load_state() continues after it; a new training needs another project_dir"});
  }
  return target;
}

std::int64_t next_number(const fs::path& folder) {
  const std::vector<NumberedCheckpoint> all = list_checkpoints(folder);
  return all.empty() ? 0 : all.back().number + 1;
}

void keep_newest(const fs::path& folder, std::size_t limit, std::int64_t saved) {
  std::vector<NumberedCheckpoint> others = list_checkpoints(folder);
  std::erase_if(others, [&](const NumberedCheckpoint& one) { return one.number == saved; });
  for (std::size_t i = 0; i + limit <= others.size(); ++i) remove_folder(others[i].folder);
}

void remove_leftovers(const fs::path& folder) {
  static const std::regex name(R"(\.checkpoint[_-]\d+\.acc-(new|copy|gone))");
  if (!fs::is_directory(folder)) return;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (std::regex_match(entry.path().filename().string(), name)) leftovers.push_back(entry.path());
  }
  std::error_code another_process_did;
  for (const fs::path& leftover : leftovers) {
    // The launcher may still be writing a copy: it notices that the name is gone, but not what it lacks.
    fs::path trash = leftover;
    trash.replace_extension(".acc-gone");
    fs::remove_all(trash, another_process_did);
    fs::rename(leftover, trash, another_process_did);
    fs::remove_all(trash, another_process_did);
  }
}

void remove_checkpoint_files(const fs::path& folder) {
  if (!fs::is_directory(folder)) return;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_checkpoint_file(entry.path().filename().string())) files.push_back(entry.path());
  }
  for (const fs::path& file : files) {
    std::error_code error;
    fs::remove_all(file, error);
    if (error) throw_errno(file, "cannot be removed", error.value());
  }
}

}  // namespace detail

std::vector<NumberedCheckpoint> list_checkpoints(const fs::path& folder, std::string_view prefix) {
  std::vector<NumberedCheckpoint> checkpoints;
  if (!fs::is_directory(folder)) return checkpoints;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto number = number_of(entry.path().filename().string(), prefix);
    if (number && entry.is_directory()) checkpoints.push_back({*number, entry.path()});
  }
  std::ranges::sort(checkpoints, {}, &NumberedCheckpoint::number);
  return checkpoints;
}

fs::path newest_checkpoint(const fs::path& folder) {
  const std::vector<NumberedCheckpoint> all = list_checkpoints(folder);
  if (all.empty()) throw Error({.what = "holds no checkpoint", .where = folder.string()});
  return all.back().folder;
}

}  // namespace acc
