// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/weights_replacement.hpp"

#include <cerrno>
#include <cstdio>
#include <regex>
#include <set>
#include <string>
#include <system_error>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

bool is_weights_file(const std::string& name) {
  static const std::regex kOurs(R"(model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?)");
  return std::regex_match(name, kOurs);
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

void remove_file(const fs::path& file) {
  std::error_code error;
  if (!fs::remove(file, error) && error) throw_errno(file, "cannot be removed", error.value());
}

}  // namespace

WeightsReplacement::WeightsReplacement(const fs::path& folder)
    : folder_(absolute_path(folder)),
      temporary_(folder_ / (".weights.acc-" + std::to_string(::getpid()))),
      existing_(folder_) {
  std::error_code error;
  while (!fs::exists(existing_, error) && existing_.has_relative_path()) existing_ = existing_.parent_path();
  fs::remove_all(temporary_, error);  // of a killed process
  fs::create_directories(temporary_, error);
  if (error) throw_errno(folder_, "cannot be created", error.value());
}

WeightsReplacement::~WeightsReplacement() {
  std::error_code error;
  fs::remove_all(temporary_, error);
}

void WeightsReplacement::publish() {
  std::set<std::string> names = names_in(temporary_);
  const bool in_shards = names.erase(std::string(kWeightsIndex)) > 0;
  // Readers take the one file or the index: without either there are no weights.
  if (in_shards) {
    remove_file(folder_ / kWeightsIndex);
    remove_file(folder_ / kWeightsFile);
  }
  const auto move = [&](const std::string& name) {
    if (::rename((temporary_ / name).c_str(), (folder_ / name).c_str()) != 0)
      throw_errno(folder_ / name, "cannot be replaced", errno);
  };
  for (const std::string& name : names) move(name);
  if (in_shards) {
    move(std::string(kWeightsIndex));
    names.emplace(kWeightsIndex);
  } else {
    remove_file(folder_ / kWeightsIndex);
  }
  for (const std::string& name : names_in(folder_))
    if (is_weights_file(name) && !names.contains(name)) remove_file(folder_ / name);
  std::error_code error;
  fs::remove_all(temporary_, error);
  sync_folder(folder_);
  // The folders that were created have their names in the one above.
  for (fs::path created = folder_; created != existing_; created = created.parent_path())
    sync_folder(created.parent_path());
}

}  // namespace acc
