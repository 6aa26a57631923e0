// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/plan/command_line.hpp"

namespace acc::launcher {

/// What `acc test` starts where acc-selftest is not installed, program and arguments: a training with PyTorch
/// in the Python that the job would use, or if that has no torch, this program itself as plain_test_worker().
/// Both meet all the other processes through the store, and say what they tested and what not. `expected` is
/// the number of processes, `time_limit` the seconds of each step. The JSON is also written to `report_file`,
/// unless that is empty.
std::vector<std::string> plain_test(const CommandLine& command_line, int expected, double time_limit,
                                    bool json, const std::string& report_file);

/// A worker of `acc test` without Python: `words` are its arguments. Returns the exit code.
int plain_test_worker(const std::vector<std::string>& words);

/// The first word of these arguments.
inline constexpr const char* kPlainTestWorker = "--worker-without-torch";

}  // namespace acc::launcher
