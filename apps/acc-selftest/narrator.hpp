// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "board.hpp"
#include "report.hpp"

namespace acc::selftest {

/// Tells a person, or with `json` a program, what the test finds out. Every process keeps the whole report,
/// since any of them may be the one that has to tell how the test failed; otherwise only the main process
/// speaks. It may be called from several threads.
class Narrator {
 public:
  Narrator(Board& board, bool main_process, bool json) : board_(board), speaks_(main_process), json_(json) {}

  void begin(const Report& head);
  void add(const CheckResult& check);
  /// The rest of the report. Returns whether the test passed.
  bool finish(const Report& measured);
  /// Says why the test ends here, unless another process of this machine has said it.
  void fail(const std::string& error);

 private:
  Board& board_;
  bool speaks_;
  bool json_;
  std::mutex mutex_ = {};
  Report report_ = {};
};

}  // namespace acc::selftest
