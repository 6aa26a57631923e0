// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/descriptor.hpp"

namespace acc {

/// A file for the lines of all workers in which one of some words occurs: torchrun's filtered_stdout.log.
class FilteredLog {
 public:
  /// `on_lost`: the file cannot be written any more, and is given up.
  FilteredLog(Descriptor file, std::vector<std::string> words,
              std::function<void(const std::string&)> on_lost);

  /// Writes `shown` when `line` holds one of the words.
  void take(std::string_view line, std::string_view shown);

 private:
  Descriptor file_;
  std::vector<std::string> words_;
  std::function<void(const std::string&)> on_lost_;
};

}  // namespace acc
