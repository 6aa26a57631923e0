// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/report/job_history.hpp"
#include "acc/report/selftest_results.hpp"

namespace acc::launcher {

/// What is known of a run of `acc test`.
struct SelftestRun {
  SelftestResults results = {};
  /// Of the job that ran it, by the events of this node.
  JobHistory history = {};
  int exit_code = 0;
  /// Of acc.
  std::string version = {};
};

/// What the run came to, in a sentence: `Passed: 17 of 17 checks.`, or which step failed on which rank. Not
/// escaped yet.
std::string verdict_of(const SelftestRun& run);

/// A page of HTML that shows what `acc test` found: links between ranks as matrices, all-reduces beside the
/// speed of memory, ranks, checks, and what is much slower than the rest. Like report_page() it needs no
/// other file.
std::string selftest_page(const SelftestRun& run);

}  // namespace acc::launcher
