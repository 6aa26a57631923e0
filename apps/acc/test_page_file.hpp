// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "acc/base/files.hpp"

namespace acc::launcher {

/// The page of `acc test --html`. What it tells is collected in two files in memory while the test runs: the
/// results, and the events of the job. Both end with this process.
class TestPageFile {
 public:
  /// Throws Error{system} if the page could not be written.
  /// `is_first`: this node may be the first of the job.
  TestPageFile(std::filesystem::path file, bool is_first);

  /// Where rank 0, or the rank that knows why the test ends, writes the results.
  std::string results_path() const;

  /// For the events of the job on this node.
  std::filesystem::path events_path() const;

  /// Writes the page if this is the first node of the job. Returns the exit code: that of the test, or 1 if
  /// it passed without results. Throws Error{system} if the page cannot be written after a test that passed;
  /// after one that failed it warns, so that the exit code says how the test ended.
  int write(int exit_code) const;

 private:
  std::filesystem::path file_;
  bool is_first_;
  Descriptor results_;
  Descriptor events_;
};

}  // namespace acc::launcher
