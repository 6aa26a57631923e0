// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/runtime/tracking/event_file.hpp"

namespace acc::test {

/// The event files in the folder itself, sorted by name.
inline std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// The events in a file. Throws when a length or checksum is wrong or bytes are left over.
inline std::vector<std::string> event_records(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  std::vector<std::string> records;
  for (std::size_t begin = 0; begin != bytes.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + begin, std::min<std::size_t>(8, bytes.size() - begin));
    const std::string record = bytes.substr(std::min(begin + 12, bytes.size()), length);
    if (bytes.compare(begin, record.size() + 16, detail::framed_record(record)) != 0)
      throw std::runtime_error("no record");
    records.push_back(record);
    begin += record.size() + 16;
  }
  return records;
}

}  // namespace acc::test
