// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

#include "progress.hpp"
#include "report.hpp"

namespace acc::selftest {

/// Writes the results as text or, with `json`, as one JSON object. Only the main process writes, unless the
/// test ends early: then any process may report that, so each keeps the whole report. The report is also
/// written to `file` as JSON, unless that is empty. Thread-safe.
class Reporter {
 public:
  Reporter(ProgressBoard& board, bool main_process, bool json, std::filesystem::path file)
      : board_(board), writes_(main_process), json_(json), file_(std::move(file)) {}

  void begin(const Report& head);
  void add(const CheckResult& check);
  /// Adds a measurement.
  template <class Results>
  void set(Results Report::* member, Results results) {
    const std::lock_guard lock(mutex_);
    report_.*member = std::move(results);
  }
  /// Writes the rest of the report. Returns whether the test passed.
  bool finish();
  /// Reports why the test ends here, unless another process of this machine has done so.
  void fail(const std::string& error);

 private:
  void write_file() const;

  ProgressBoard& board_;
  bool writes_;
  bool json_;
  std::filesystem::path file_;
  std::mutex mutex_ = {};
  Report report_ = {};
};

}  // namespace acc::selftest
