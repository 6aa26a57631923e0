// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "acc/config/document.hpp"

namespace acc::launcher {

/// A key that no longer has an effect, its position, and the reason.
struct FormerKey {
  std::string name = {};
  Position position = {};
  std::string instead = {};

  bool operator==(const FormerKey&) const = default;
};

/// Replaces keys of older versions of accelerate (`fp16`, `dynamo_backend`, `num_processes: -1`) by those
/// of 1.15, keeping their positions. Removes and returns keys that 1.15 no longer has.
std::vector<FormerKey> translate_former_keys(DocumentNode& mapping);

/// A config file rewritten for version 2 of FSDP.
struct Fsdp2Text {
  std::string text = {};
  /// Dropped keys and other remarks for the user, one line each.
  std::vector<std::string> notes = {};

  bool operator==(const Fsdp2Text&) const = default;
};

/// Converts a config file as accelerate's to-fsdp2 does: fsdp_version becomes 2, the sharding strategy
/// becomes the boolean fsdp_reshard_after_forward, and settings of version 1 alone are dropped. Everything
/// else stays, comments and order included; JSON stays JSON. Throws Error{config} if `text` is not a
/// mapping.
Fsdp2Text to_fsdp2(std::string_view text, const std::filesystem::path& file);

}  // namespace acc::launcher
