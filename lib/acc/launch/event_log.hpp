// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "acc/base/descriptor.hpp"

namespace acc {

/// The file of `--event-log`. Lines are added to what is there, each in one write, so that several nodes and
/// runs may share a file.
class EventLog {
 public:
  /// Throws Error{system}. `on_lost`: the file cannot be written any more, and is given up.
  EventLog(const std::filesystem::path& file, std::function<void(const std::string&)> on_lost);

  void write(std::string_view line);

 private:
  Descriptor file_;
  std::function<void(const std::string&)> on_lost_;
};

}  // namespace acc
