// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/launch_report.hpp"

#include <csignal>

#include "acc/base/error.hpp"

namespace acc::launcher {

int exit_code_of(const LaunchReport& report) {
  if (report.front_lost) return 128 + SIGKILL;
  if (report.stop_signal) return 128 + *report.stop_signal;
  if (report.hung) return kHungCode;
  int code = 0;
  if (report.first_failure) code = shell_code(report.first_failure->status);
  if (report.group_code) code = *report.group_code;
  if (code == 0 && report.output_lost) return exit_code(ErrorKind::system);
  return code;
}

}  // namespace acc::launcher
