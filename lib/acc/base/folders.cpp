// SPDX-License-Identifier: Apache-2.0
#include "acc/base/folders.hpp"

#include <sys/auxv.h>

#include "acc/base/error.hpp"

namespace acc {

namespace fs = std::filesystem;

fs::path program_path() {
  const auto address = ::getauxval(AT_EXECFN);
  return address == 0 ? "" : reinterpret_cast<const char*>(address);
}

fs::path current_folder() {
  std::error_code error;
  fs::path folder = fs::current_path(error);
  if (!error) return folder;
  throw Error({.kind = ErrorKind::system,
               .what = "the current folder is not there any more",
               .hint = "change to another one"});
}

fs::path absolute_path(const fs::path& path) {
  return path.is_absolute() ? path : current_folder() / path;
}

std::optional<fs::path> temporary_folder(const Environment& environment) {
  const fs::path named = environment.get("TMPDIR");
  std::error_code ignored;
  if (named.empty() || !fs::is_directory(named, ignored)) return std::nullopt;
  return absolute_path(named);
}

}  // namespace acc
