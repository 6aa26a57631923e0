// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc {

/// The number of bits of one element of a safetensors dtype (F32: 32); nullopt for an unknown dtype.
std::optional<int> bits_of(std::string_view dtype);

/// A tensor as described in the header of a safetensors file.
struct TensorInfo {
  std::string name = {};
  /// The dtype as safetensors names it: F32, BF16, I64, ...
  std::string dtype = "F32";
  std::vector<std::int64_t> shape = {};
  /// The range of its bytes, counted from the end of the header.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const TensorInfo&) const = default;
};

/// The number of elements of the tensor; 1 for a scalar.
inline std::int64_t elements(const TensorInfo& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

/// The header of a safetensors file.
struct SafetensorsHeader {
  /// Sorted by the offset of their bytes.
  std::vector<TensorInfo> tensors = {};
  std::map<std::string, std::string> metadata = {};
  /// The offset in the file at which the tensors' bytes begin.
  std::uint64_t data_begin = 8;

  bool operator==(const SafetensorsHeader&) const = default;
};

/// Reads the header only. Throws Error{config} naming the file when it is not a safetensors file: a header
/// that is truncated, larger than 100 MB or not JSON, unknown dtypes, bytes that overlap, leave gaps, do not
/// match their shapes or lie beyond the end. Throws Error{system} when it cannot be read.
SafetensorsHeader read_safetensors_header(const std::filesystem::path& file);

/// The same for a file whose whole content is in memory; `file` names it in errors.
SafetensorsHeader parse_safetensors_header(std::string_view content, const std::filesystem::path& file);

/// The first bytes of a file with these tensors: the length of the header, and its JSON, padded with spaces
/// to a multiple of 8. The tensors' bytes follow, in the order of `header.tensors`.
std::string format_safetensors_header(const SafetensorsHeader& header);

}  // namespace acc
