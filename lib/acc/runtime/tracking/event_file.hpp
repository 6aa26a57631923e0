// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "acc/runtime/tracking/appended_file.hpp"

namespace acc {

/// CRC-32C (Castagnoli).
std::uint32_t crc32c(std::string_view bytes);

/// A record as TensorFlow's files have it (tensorflow/core/lib/io/record_writer.h): the length in 8 bytes,
/// its masked CRC-32C, the bytes, their masked CRC-32C.
std::string framed_record(std::string_view bytes);

/// A file of TensorBoard's events, `events.out.tfevents.<seconds>.<host>.<pid>.<n>` as its EventFileWriter
/// names it, which begins with the event that tells the version.
class EventFile {
 public:
  /// Makes one in `folder`. Throws Error{system} when it cannot.
  explicit EventFile(const std::filesystem::path& folder);

  /// Throws Error{system}, see AppendedFile.
  void append(std::string_view event) { file_.append(framed_record(event)); }

 private:
  AppendedFile file_;
};

}  // namespace acc
