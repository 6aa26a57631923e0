// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

#include "acc/base/files.hpp"

namespace acc::detail {

/// Takes SIGINT of this process while it lives, whichever thread the kernel chooses for it; unless it is
/// ignored, as under nohup. One object at a time.
class Interrupts {
 public:
  /// Throws Error{system}.
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Readable after a SIGINT, until acknowledge().
  int descriptor() const { return event_.get(); }
  void acknowledge() const;

  /// Gives SIGINT back, and passes one on to the program's own handler, if it has one.
  void pass_on();

 private:
  void restore();

  Descriptor event_;
  struct sigaction before_ = {};
  bool taken_ = false;
};

}  // namespace acc::detail
