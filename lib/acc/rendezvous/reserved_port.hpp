// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "acc/base/descriptor.hpp"

namespace acc::launcher {

/// A TCP port that is kept free for a worker: nobody gets it by chance, and whoever asks for it by number,
/// with SO_REUSEADDR as every store does, can listen on it.
class ReservedPort {
 public:
  /// `port` 0: a free one. Throws Error{system} when it is taken.
  explicit ReservedPort(std::uint16_t port);

  std::uint16_t port() const { return port_; }

 private:
  Descriptor socket_ = {};
  std::uint16_t port_ = 0;
};

}  // namespace acc::launcher
