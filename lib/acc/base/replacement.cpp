// SPDX-License-Identifier: Apache-2.0
#include "acc/base/replacement.hpp"

#include <fcntl.h>

#include <tuple>
#include <utility>

namespace acc {
namespace {

// A folder's time changes with every entry in it, whatever that is.
auto identity_of(const struct stat& about) {
  const bool is_file = S_ISREG(about.st_mode);
  return std::tuple(about.st_dev, about.st_ino, is_file ? about.st_size : 0,
                    is_file ? about.st_mtim.tv_sec : 0, is_file ? about.st_mtim.tv_nsec : 0);
}

}  // namespace

ReplacementCheck::ReplacementCheck(std::vector<std::filesystem::path> paths) : paths_(std::move(paths)) {
  for (const std::filesystem::path& path : paths_) {
    Original& original = originals_.emplace_back();
    original.folder = Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    original.is_there = original.folder ? ::fstat(original.folder.get(), &original.about) == 0
                                        : ::stat(path.c_str(), &original.about) == 0;
  }
}

bool ReplacementCheck::replaced() const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    struct stat now = {};
    const bool is_there = ::stat(paths_[i].c_str(), &now) == 0;
    if (originals_[i].is_there != is_there) return true;
    if (is_there && identity_of(now) != identity_of(originals_[i].about)) return true;
  }
  return false;
}

void refuse_replaced(const std::filesystem::path& path) {
  throw Error({.kind = ErrorKind::system,
               .what = "is replaced again and again while it is read",
               .where = path.string(),
               .hint = "read a checkpoint that is not being saved"});
}

}  // namespace acc
