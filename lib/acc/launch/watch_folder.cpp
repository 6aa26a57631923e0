// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/watch_folder.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kHook =
#include "watch_hook_program.inc"
    ;

// The name tells tracebacks, and what acc reads from them, that these are not the user's lines.
constexpr std::string_view kSiteCustomize =
    "import os\n"
    "with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'acc_watch.py'), encoding='utf-8') "
    "as file:\n"
    "    program = file.read()\n"
    "exec(compile(program, '<acc watch>', 'exec'))\n";

constexpr std::string_view kProgress =
#include "progress_program.inc"
    ;

}  // namespace

void make_watch_folder(const std::filesystem::path& folder) {
  if (folder.string().find(':') != std::string::npos)
    throw Error({.kind = ErrorKind::usage,
                 .what = "has a ':' in its path, which separates the folders of PYTHONPATH",
                 .where = folder.string()});
  if (::mkdir(folder.c_str(), 0700) != 0) throw_errno(folder, "cannot be created", errno);
  replace_file(folder / "acc_progress.py", kProgress);
  replace_file(folder / "acc_watch.py", kHook);
  replace_file(folder / "sitecustomize.py", kSiteCustomize);
}

}  // namespace acc::launcher
