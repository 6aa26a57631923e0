// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/checksums.hpp"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/json_number.hpp"
#include "acc/formats/state_messages.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

struct FileChecksum {
  std::uint64_t bytes = 0;
  std::string xxh3 = {};
};
using Checksums = std::map<std::string, FileChecksum>;

std::string xxh3_of(const void* data, std::size_t size) {
  const XXH128_hash_t hash = XXH3_128bits(data, size);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string xxh3_of(std::string_view text) {
  return xxh3_of(text.data(), text.size());
}

FileChecksum sum_up(const fs::path& file) {
  const MappedFile content(file);
  return {.bytes = content.size(), .xxh3 = xxh3_of(content.data(), content.size())};
}

fs::path list_of(const fs::path& folder, std::size_t index) {
  return folder / fmt::format("checksums_{}.json", index);
}

// Or one that another process is writing, beside its name.
bool is_list(std::string_view name) {
  return name.starts_with("checksums_") && name.find(".json") != std::string_view::npos;
}

// Relative to the folder, the largest first: dealt in turns, they are about as much for each process.
std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::pair<std::uint64_t, std::string>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    if (!entry.is_directory() && !is_list(name)) files.emplace_back(entry.file_size(), name);
  }
  std::ranges::sort(files, std::greater());
  std::vector<std::string> names;
  for (auto& [bytes, name] : files) names.push_back(std::move(name));
  return names;
}

// A line of JSON, and one with its own checksum.
std::string list_text(const Checksums& checksums, std::size_t count) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, checksum] : checksums) {
    require_utf8_name(name);
    files[name] = {{"bytes", checksum.bytes}, {"xxh3", checksum.xxh3}};
  }
  const std::string text = nlohmann::json({{"lists", count}, {"files", files}}).dump();
  return text + "\n" + xxh3_of(text) + "\n";
}

// Adds what the list says; returns how many lists there are.
std::size_t read_list(const fs::path& file, Checksums& checksums) try {
  const std::string text = read_file(file);
  const std::size_t end = text.find('\n');
  if (end == std::string::npos ||
      text.substr(end + 1) != xxh3_of(std::string_view(text).substr(0, end)) + "\n")
    refuse_file(file, "is damaged");
  const auto list = nlohmann::json::parse(text.substr(0, end));
  for (const auto& [name, checksum] : list.at("files").items()) {
    const auto bytes = whole_number<std::uint64_t>(checksum.at("bytes"));
    if (!bytes) refuse_file(file, "is damaged");
    checksums[name] = {.bytes = *bytes, .xxh3 = checksum.at("xxh3")};
  }
  const auto count = whole_number<std::size_t>(list.at("lists"));
  if (!count) refuse_file(file, "is damaged");
  return *count;
} catch (const nlohmann::json::exception&) {
  refuse_file(file, "is damaged");
}

Checksums read_lists(const fs::path& folder) {
  Checksums checksums;
  const std::size_t count = read_list(list_of(folder, 0), checksums);
  for (std::size_t i = 1; i < count; ++i) read_list(list_of(folder, i), checksums);
  return checksums;
}

bool is_mine(std::size_t file, const FileShare& share) {
  return file % share.count == share.index;
}

void require_undamaged(const fs::path& folder, const FileShare& share) {
  const Checksums listed = read_lists(folder);
  const std::vector<std::string> files = files_in(folder);
  for (const std::string& name : files)
    if (!listed.contains(name)) refuse_file(folder / name, "was not there when the folder was written");
  for (const auto& [name, checksum] : listed)
    if (std::ranges::find(files, name) == files.end()) refuse_file(folder / name, "is missing");
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!is_mine(i, share)) continue;
    const FileChecksum& expected = listed.at(files[i]);
    const FileChecksum actual = sum_up(folder / files[i]);
    if (actual.bytes != expected.bytes)
      refuse_file(folder / files[i],
                  fmt::format("has {} bytes, and {} were written", actual.bytes, expected.bytes));
    if (actual.xxh3 != expected.xxh3) refuse_file(folder / files[i], "is not what was written");
  }
}

}  // namespace

std::string checksum_of(const fs::path& file) {
  return sum_up(file).xxh3;
}

void write_checksums(const fs::path& folder, const FileShare& share) {
  Checksums checksums;
  const std::vector<std::string> files = files_in(folder);
  for (std::size_t i = 0; i < files.size(); ++i)
    if (is_mine(i, share)) checksums[files[i]] = sum_up(folder / files[i]);
  replace_file(list_of(folder, share.index), list_text(checksums, share.count));
}

std::string damage_in(const fs::path& folder, const FileShare& share) {
  try {
    require_undamaged(folder, share);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace acc
