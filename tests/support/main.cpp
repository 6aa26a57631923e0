// SPDX-License-Identifier: Apache-2.0
#define CATCH_CONFIG_RUNNER
#include <signal.h>

#include "support/catch.hpp"
#include "support/hang_report.hpp"

int main(int argc, char** argv) {
  // What nohup, a shell's background and CI ignore would be ignored in every job that a test starts.
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT}) ::signal(signal, SIG_DFL);
  acc::test::report_hang();
  return Catch::Session().run(argc, argv);
}
