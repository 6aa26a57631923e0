// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/config/read.hpp"

namespace acc::test {

/// What the reader makes of a section of a config file, given its lines.
inline launcher::Value read_section(const std::string& section, const std::string& lines) {
  const std::string text = "distributed_type: MULTI_GPU\n" + section + ":\n" + lines;
  return launcher::parse_config(text, "c.yaml").values.at(section);
}

}  // namespace acc::test
