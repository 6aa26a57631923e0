// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/other_launcher.hpp"

#include <fmt/format.h>

#include "acc/base/text.hpp"

namespace acc::launcher {

OtherLauncher find_launcher(const std::vector<std::string>& names, const LaunchInputs& inputs) {
  for (const std::string& name : names) {
    WorkerProgram found =
        find_program({.words = {name}, .no_python = true}, inputs.environment, inputs.file_kind);
    if (!found.problem) return {.command = {name}, .file = found.file};
  }
  return {
      .command = {names.front()},
      .problem = Problem{.what = fmt::format("this job needs {}, which is not on PATH", join(names, " or ")),
                         .hint = "install it on this machine"}};
}

}  // namespace acc::launcher
