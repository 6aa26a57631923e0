// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace acc {

/// How an object becomes bytes for other processes and back. Where the compiler calls it incomplete for a
/// type: include acc/runtime/process/objects.hpp.
template <class T>
struct ObjectText;

template <>
struct ObjectText<std::string> {
  static std::string write(const std::string& text) { return text; }
  static std::string read(std::string_view text) { return std::string(text); }
};

}  // namespace acc
