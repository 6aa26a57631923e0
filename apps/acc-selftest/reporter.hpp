// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "progress.hpp"
#include "report.hpp"

namespace acc::selftest {

/// Writes the results as text or, with `json`, as one JSON object. Only the main process writes, unless the
/// test ends early: then any process may report that, so each keeps the whole report. Thread-safe.
class Reporter {
 public:
  Reporter(ProgressBoard& board, bool main_process, bool json)
      : board_(board), writes_(main_process), json_(json) {}

  void begin(const Report& head);
  void add(const CheckResult& check);
  /// Adds the measurements and writes the rest of the report. Returns whether the test passed.
  bool finish(const Report& measured);
  /// Reports why the test ends here, unless another process of this machine has done so.
  void fail(const std::string& error);

 private:
  ProgressBoard& board_;
  bool writes_;
  bool json_;
  std::mutex mutex_ = {};
  Report report_ = {};
};

}  // namespace acc::selftest
