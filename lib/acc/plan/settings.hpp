// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/setting.hpp"

namespace acc::launcher {

/// Every setting of the schema with the value that won and who gave it.
class Settings {
 public:
  /// typed flag > PET_* > file > default. Under accelerate's rules a flag also beats a variable that says the
  /// same in another way, or rules out what the flag says: `--num_processes` beats PET_NPROC_PER_NODE.
  /// Throws Error{usage} when a PET_* variable cannot be read as its setting.
  explicit Settings(const LaunchInputs& inputs);

  const Setting& operator[](std::string_view name) const;
  /// Somebody gave it, and not as null.
  bool given(std::string_view name) const;
  /// Given by a flag or a variable, not by a file.
  bool typed(std::string_view name) const;

  std::string text(std::string_view name) const;
  bool truth(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& origin(std::string_view name) const { return (*this)[name].origin; }

  void set(std::string_view name, Value value, std::string origin);

  const std::map<std::string, Setting, std::less<>>& all() const { return settings_; }
  /// Which variables have no effect, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::map<std::string, Setting, std::less<>> settings_ = {};
  std::map<std::string, Setting, std::less<>> typed_ = {};
  std::vector<std::string> notes_ = {};
};

}  // namespace acc::launcher
