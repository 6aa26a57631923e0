// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/log.hpp"
#include "acc/launch/launch_report.hpp"
#include "acc/launch/reporter.hpp"

namespace acc::launcher {

/// `failed with exit code 5`, `was ended by signal 11 (SIGSEGV)`; says when the kernel killed it for memory.
std::string ending_of(const WorkerFailure& failure);

/// One line: `rank 1 (local rank 1, pid 1234) on host X failed with exit code 5`.
std::string summarize(const WorkerFailure& failure);

/// The block of lines that reports a failed job. `python` is the interpreter of the worker and why it was
/// chosen, if known: it is shown when a module was missing. `exited_ranks` had ended before with exit code 0:
/// a lost connection may be that to one of them.
std::string failure_text(const WorkerFailure& failure, const std::string& python = "",
                         const std::vector<int>& exited_ranks = {});

/// Reports to a person: nothing for a successful job, one block for a failed one.
class TextReporter : public Reporter {
 public:
  /// Writes whole lines to acc's standard error at this level.
  using Write = std::function<void(log::Level, std::string_view)>;

  /// `python` is the interpreter of the workers on `host`, and why it was chosen; empty: none.
  explicit TextReporter(Write write, std::string host = {}, std::string python = {})
      : write_(std::move(write)), host_(std::move(host)), python_(std::move(python)) {}

  void report(const Event& event) override;

 private:
  Write write_;
  std::string host_;
  std::string python_;
};

}  // namespace acc::launcher
