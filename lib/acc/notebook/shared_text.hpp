// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "acc/base/files.hpp"

namespace acc::detail {

/// A text that this process and its later forks share: what one writes the others read. It lies in memory,
/// and of any size.
class SharedText {
 public:
  /// Empty. Throws Error{system}.
  SharedText();

  /// Replaces the text. Throws Error{system} when memory is short.
  void write(std::string_view text) const;
  std::string read() const;

 private:
  Descriptor file_;
};

}  // namespace acc::detail
