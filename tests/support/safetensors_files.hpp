// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/formats/safetensors.hpp"

namespace acc::test {

/// A tensor of bytes (U8) with these contents.
struct ByteTensor {
  std::string name = {};
  std::string bytes = {};
};

/// The text of a safetensors file that holds them one after the other.
inline std::string safetensors_text(const std::vector<ByteTensor>& tensors) {
  SafetensorsHeader header;
  std::string data;
  for (const ByteTensor& tensor : tensors) {
    header.tensors.push_back({.name = tensor.name,
                              .dtype = "U8",
                              .shape = {static_cast<std::int64_t>(tensor.bytes.size())},
                              .begin = data.size(),
                              .end = data.size() + tensor.bytes.size()});
    data += tensor.bytes;
  }
  return format_safetensors_header(header) + data;
}

}  // namespace acc::test
