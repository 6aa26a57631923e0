// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "acc/base/files.hpp"

namespace acc {

/// The file of a model's weights in a folder, and the index of several.
inline constexpr std::string_view kWeightsFile = "model.safetensors";
inline constexpr std::string_view kWeightsIndex = "model.safetensors.index.json";

/// New weights for a folder: their files are written beside the earlier ones and put in their place together.
/// At no moment do earlier and new files form a model: while files are exchanged, the folder has none.
class WeightsReplacement {
 public:
  /// Creates the folder if it is missing. Removes what killed processes have left in it; if that is
  /// uncertain, as they ran on another machine, only what has not been written to for a day. Throws
  /// Error{system}.
  explicit WeightsReplacement(const std::filesystem::path& folder);
  /// Removes what was not published.
  ~WeightsReplacement();
  WeightsReplacement(const WeightsReplacement&) = delete;
  WeightsReplacement& operator=(const WeightsReplacement&) = delete;

  /// Where to write kWeightsFile, or shards and kWeightsIndex.
  const std::filesystem::path& temporary() const { return temporary_; }

  /// Puts the files in their place, removes the weights of earlier saves, and returns when all names are on
  /// the disk. Throws Error{system}.
  void publish();

 private:
  std::filesystem::path folder_;
  // Locked as long as the object is there: others see from that whether its process still runs.
  Descriptor lock_ = {};
  std::filesystem::path temporary_ = {};
  // The folder, or the first one above it that was there.
  std::filesystem::path existing_ = {};
};

}  // namespace acc
