// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "acc/weights/tensor_info.hpp"

namespace acc::launcher {

/// The head of a safetensors file.
struct SafetensorsHeader {
  /// In the order of their bytes.
  std::vector<TensorInfo> tensors = {};
  std::map<std::string, std::string> metadata = {};
  /// Where the tensors' bytes begin in the file.
  std::uint64_t data_begin = 8;

  bool operator==(const SafetensorsHeader&) const = default;
};

/// Reads the head alone, however large the file is. Throws Error{config} naming the file when it is no
/// safetensors file: a head that is cut, larger than 100 MB or no JSON, types that are unknown, bytes that
/// overlap, do not fit their shapes or lie beyond the file. Throws Error{system} when it cannot be read.
SafetensorsHeader read_safetensors_header(const std::filesystem::path& file);

/// The same for the JSON of a head; the file has `data_bytes` of tensors.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                           const std::filesystem::path& file);

/// The first bytes of a file with these tensors: the length, and the JSON, padded with blanks to a multiple
/// of 8.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace acc::launcher
