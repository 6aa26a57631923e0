// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "acc/weights/checkpoint.hpp"

namespace acc {

/// A file that a merge writes.
struct MergedFile {
  std::string name = {};
  SafetensorsHeader header = {};
  /// For each tensor of the header, the file of the checkpoint and the place in it.
  struct Source {
    std::size_t file = 0;
    std::uint64_t offset = 0;

    bool operator==(const Source&) const = default;
  };
  std::vector<Source> sources = {};
};

/// How the tensors of a checkpoint are laid out in files of at most `most` bytes (a larger tensor has a file
/// of its own): one `model.safetensors`, or `model-00001-of-0000N.safetensors`. Tensors come in the order of
/// their names.
std::vector<MergedFile> plan_merge(const std::vector<CheckpointFile>& files, std::uint64_t most);

/// `model.safetensors.index.json` of several files; empty for one.
std::string merged_index(const std::vector<MergedFile>& files);

/// Writes the files into `folder`, which is made where it is missing, with a fixed piece of memory, however
/// large they are: each in one step, so that no reader sees a part. Throws Error{system}.
void write_merged(const std::vector<CheckpointFile>& from, const std::vector<MergedFile>& files,
                  const std::filesystem::path& folder);

/// `5GB`, `200MB`: decimal units, as accelerate's save_model takes them. Throws Error{usage} with `where`.
std::uint64_t parse_size(const std::string& text, const std::string& where);

}  // namespace acc
