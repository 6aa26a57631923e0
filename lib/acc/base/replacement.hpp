// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <concepts>
#include <filesystem>
#include <functional>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"

namespace acc {

/// Notices that another process has put new files or folders in the place of some: whoever has opened several
/// files one after the other may then have those of two saves.
class ReplacementCheck {
 public:
  /// A path that does not exist yet counts as replaced when it does.
  explicit ReplacementCheck(std::vector<std::filesystem::path> paths);

  /// Whether one of the paths leads to something else than at first. For a file, also whether it was written
  /// to.
  bool replaced() const;

 private:
  struct Original {
    bool is_there = false;
    struct stat about = {};
    // Of a folder: stays open, so that its inode is not used again.
    Descriptor folder = {};
  };

  std::vector<std::filesystem::path> paths_;
  std::vector<Original> originals_ = {};
};

/// Throws Error{system}: `path` is replaced again and again while it is read.
[[noreturn]] void refuse_replaced(const std::filesystem::path& path);

/// Calls `read`, with the check if it takes one, and returns its result; again, also when it throws, if one
/// of `paths` was replaced meanwhile. `agree` makes several processes read again together. Throws
/// Error{system}, naming the first path, if that does not end.
template <class Read>
auto read_unreplaced(
    const std::vector<std::filesystem::path>& paths, const Read& read,
    const std::function<bool(bool)>& agree = [](bool replaced) { return replaced; }) {
  constexpr int kMaxTries = 100;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    const ReplacementCheck check(paths);
    try {
      auto result = [&] {
        if constexpr (std::invocable<const Read&, const ReplacementCheck&>) {
          return read(check);
        } else {
          return read();
        }
      }();
      if (!agree(check.replaced())) return result;
    } catch (...) {
      if (!agree(check.replaced())) throw;
    }
  }
  refuse_replaced(paths.front());
}

}  // namespace acc
