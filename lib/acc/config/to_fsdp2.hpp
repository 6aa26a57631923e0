// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// A config file rewritten for version 2 of FSDP.
struct Fsdp2Text {
  std::string text = {};
  /// Keys that version 2 has no more, and what else the person should know, a line each.
  std::vector<std::string> notes = {};

  bool operator==(const Fsdp2Text&) const = default;
};

/// accelerate's to-fsdp2: fsdp_version becomes 2, the sharding strategy a truth value under
/// fsdp_reshard_after_forward, what version 2 has no more goes; everything else stays, comments and order
/// too, and JSON stays JSON. Throws Error{config} when `text` is no mapping.
Fsdp2Text to_fsdp2(std::string_view text, const std::filesystem::path& file);

}  // namespace acc::launcher
