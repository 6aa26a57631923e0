// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/config/document.hpp"

namespace acc {

/// Rewrites what older versions of accelerate wrote into today's keys, at the same places in the file:
/// `fp16`, `dynamo_backend`, `num_processes: -1`. Keys that accelerate gave up are taken out. Returns a note
/// for each thing that has no effect any more.
std::vector<std::string> translate_former_keys(DocumentNode& mapping);

}  // namespace acc
