// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace acc {

/// For its scope, LibTorch's operations that the calling thread calls use this thread alone: pieces too small
/// to be worth dividing, or work that is already divided among threads.
class OneCore {
 public:
  OneCore();
  ~OneCore();
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  int before_;
};

}  // namespace acc
