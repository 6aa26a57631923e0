// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/config/value.hpp"

namespace acc::launcher {

/// A value that remembers who gave it: `--num_processes`, `PET_NNODES`, `job.yaml:3`, `machine`, `default`.
struct Setting {
  Value value = nullptr;
  std::string origin = "default";

  bool operator==(const Setting&) const = default;
};

}  // namespace acc::launcher
