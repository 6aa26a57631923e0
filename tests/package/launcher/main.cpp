// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "acc/base/error.hpp"
#include "acc/plan/command_line.hpp"

int main() {
  const auto command_line =
      acc::launcher::parse_command_line({"--num_processes", "2", "train.py"}, acc::launcher::Dialect::launch);
  try {
    throw acc::Error({.what = "nothing to do", .where = command_line.program.front()});
  } catch (const acc::Error& error) {
    std::puts(error.what());
  }
}
