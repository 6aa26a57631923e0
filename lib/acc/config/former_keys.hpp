// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/config/document.hpp"

namespace acc::launcher {

/// A key that has no effect any more, where it stands, and why.
struct FormerKey {
  std::string name = {};
  Position at = {};
  std::string instead = {};

  bool operator==(const FormerKey&) const = default;
};

/// Rewrites what older versions of accelerate wrote into today's keys, at the same places in the file:
/// `fp16`, `dynamo_backend`, `num_processes: -1`. Keys that accelerate gave up are taken out and returned.
std::vector<FormerKey> translate_former_keys(DocumentNode& mapping);

}  // namespace acc::launcher
