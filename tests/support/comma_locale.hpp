// SPDX-License-Identifier: Apache-2.0
// A program may write numbers as people in its country do: setlocale(LC_ALL, "").
#pragma once

#include <clocale>
#include <cstdlib>
#include <string>

#include "support/temporary_folder.hpp"

namespace acc::test {

/// While it lives, this process writes numbers as in German, with a decimal comma.
class CommaLocale {
 public:
  CommaLocale() {
    const std::string name = "de_DE.UTF-8";
    const std::string folder = folder_.path().string();
    const std::string command = "localedef -i de_DE -f UTF-8 '" + folder + "/" + name + "' 2>&1";
    if (std::system(command.c_str()) != 0) return;
    ::setenv("LOCPATH", folder.c_str(), 1);
    is_set_ = std::setlocale(LC_NUMERIC, name.c_str()) != nullptr;
    ::unsetenv("LOCPATH");
  }
  ~CommaLocale() { std::setlocale(LC_NUMERIC, "C"); }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

  /// False where Debian's package `locales` is missing.
  bool is_set() const { return is_set_; }

 private:
  TemporaryFolder folder_ = {};
  bool is_set_ = false;
};

}  // namespace acc::test
