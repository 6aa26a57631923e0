// SPDX-License-Identifier: Apache-2.0
#include "test_command.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/plan/program.hpp"
#include "launch_command.hpp"

namespace acc {

int test_command(const std::vector<std::string>& words) {
  CommandLine command_line = parse_command_line(words, Dialect::launch);
  if (command_line.help) {
    fmt::print(
        "usage: acc test [--config_file FILE] [options of acc launch]\n\n"
        "Starts a distributed sanity program as the config asks, and says whether all its checks passed.\n");
    return 0;
  }
  if (!command_line.program.empty()) {
    throw Error(
        {.what = "takes no program: it runs its own", .where = "acc test " + command_line.program.front()});
  }
  const auto program = program_folder() / "acc-selftest";
  command_line.program = {program.string()};
  if (kind_of_file(program) != FileKind::executable) {
    throw Error({.kind = ErrorKind::system,
                 .what = "acc-selftest is missing: acc was built without the runtime library",
                 .where = program.string(),
                 .hint = "build the preset `release` with LibTorch; scripts/quickstart does it"});
  }
  LaunchPlan plan = make_plan(std::move(command_line), Dialect::launch);
  const int processes = plan.num_machines * plan.nproc_per_node;
  plan.worker_command.insert(plan.worker_command.end(), {"--expect-processes", fmt::to_string(processes)});
  return start(plan);
}

}  // namespace acc
