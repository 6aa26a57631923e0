// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "acc/formats/torch_file.hpp"

namespace acc {

/// The file of a sharded checkpoint that tells where everything is.
inline constexpr std::string_view kDcpMetadataFile = ".metadata";

/// The keys on the way to a value in nested dicts and lists: a text for a dict, a number for a list.
using DcpPath = std::vector<std::variant<std::string, std::int64_t>>;

/// The name of the value in the metadata: its keys, with dots between them.
std::string dcp_name(const DcpPath& path);

/// Where a value is stored: a file of torch.save within a file of the checkpoint's folder.
struct DcpStorageInfo {
  std::string file = {};
  std::uint64_t begin = 0;
  std::uint64_t length = 0;

  bool operator==(const DcpStorageInfo&) const = default;
};

/// A box of a tensor's elements: from `offsets`, `sizes` elements in each dimension.
struct DcpBox {
  std::vector<std::int64_t> offsets = {};
  std::vector<std::int64_t> sizes = {};

  bool operator==(const DcpBox&) const = default;
};

/// A part of a tensor, and where it is stored.
struct DcpChunk {
  DcpBox box = {};
  DcpStorageInfo storage = {};

  bool operator==(const DcpChunk&) const = default;
};

/// A tensor in a sharded checkpoint.
struct DcpTensor {
  DcpPath path = {};
  const TorchDtype* dtype = nullptr;
  std::vector<std::int64_t> shape = {};
  std::vector<DcpChunk> chunks = {};

  bool operator==(const DcpTensor&) const = default;
};

/// Any other value in a sharded checkpoint.
struct DcpObject {
  DcpPath path = {};
  DcpStorageInfo storage = {};

  bool operator==(const DcpObject&) const = default;
};

/// The content of a checkpoint of torch.distributed.checkpoint, by name.
struct DcpMetadata {
  std::map<std::string, DcpTensor> tensors = {};
  std::map<std::string, DcpObject> objects = {};

  bool operator==(const DcpMetadata&) const = default;
};

/// The number of elements of a tensor or box. Throws Error{config} if it is larger than 2^60.
std::uint64_t dcp_elements(const std::vector<std::int64_t>& sizes);

/// Reads the pickle of a `.metadata` file, or of a part of it. Executes nothing in it. Throws Error{config}
/// if it is something else or damaged, a part of a tensor lies outside of it, its storage is outside of the
/// folder, or a value is compressed or of a type that acc does not support.
DcpMetadata parse_dcp_metadata(std::string_view pickle);

/// The same for the file in the folder of a checkpoint, which is named in errors, and also if the parts of a
/// tensor are not the whole. Throws Error{system} if it cannot be read.
DcpMetadata read_dcp_metadata(const std::filesystem::path& folder);

/// The pickle that Python's torch.distributed.checkpoint reads, as PyTorch 2.3 and later write it.
std::string format_dcp_metadata(const DcpMetadata& metadata);

}  // namespace acc
