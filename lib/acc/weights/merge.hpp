// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/replacement.hpp"
#include "acc/weights/checkpoint.hpp"

namespace acc::launcher {

/// A file that a merge writes.
struct MergedFile {
  std::string name = {};
  SafetensorsHeader header = {};
  /// For each tensor of the header, the file of the checkpoint and the offset in it.
  struct Source {
    std::size_t file = 0;
    std::uint64_t offset = 0;

    bool operator==(const Source&) const = default;
  };
  std::vector<Source> sources = {};
};

/// A tensor to be merged, and its source.
struct MergeItem {
  TensorInfo tensor = {};
  MergedFile::Source source = {};
};

/// Distributes tensors over files of at most `max_bytes` (a larger tensor has a file of its own): one
/// `model.safetensors`, or `model-00001-of-0000N.safetensors`. Tensors are sorted by name, and in a file
/// first by the size of their elements, so that each is aligned.
std::vector<MergedFile> lay_out(std::vector<MergeItem> items, std::uint64_t max_bytes);

/// The same for all tensors of a checkpoint.
std::vector<MergedFile> plan_merge(const std::vector<CheckpointFile>& files, std::uint64_t max_bytes);

/// `model.safetensors.index.json` of several files; empty for one.
std::string merged_index(const std::vector<MergedFile>& files);

/// Passes a tensor's bytes, from its source, to `write`, in one or more pieces.
using WriteBytes = std::function<void(std::string_view bytes)>;
using ReadTensor =
    std::function<void(const MergedFile::Source& source, const TensorInfo& tensor, const WriteBytes& write)>;

/// Writes the files into `folder`, which is created if missing, and replaces the weights there with them, see
/// WeightsReplacement. `before_write` is called before each piece of a file. Throws Error{system}, also if
/// what is read was replaced meanwhile, and what `read` and `before_write` throw; the earlier weights are
/// then still there.
void write_files(
    const std::vector<MergedFile>& files, const std::filesystem::path& folder, const ReadTensor& read,
    const ReplacementCheck& source, const std::function<void()>& before_write = [] {});

/// The same from the files of a checkpoint, with a buffer of fixed size.
void write_merged(
    const std::vector<CheckpointFile>& from, const std::vector<MergedFile>& files,
    const std::filesystem::path& folder, const ReplacementCheck& source,
    const std::function<void()>& before_write = [] {});

}  // namespace acc::launcher
