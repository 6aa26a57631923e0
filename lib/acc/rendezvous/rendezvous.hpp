// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/round.hpp"

namespace acc {

/// How the nodes of a job find each other.
class Rendezvous {
 public:
  Rendezvous() = default;
  virtual ~Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Called before each attempt, when nothing of the one before lives any more. The store of the round that
  /// it returns is empty. Throws Error{rendezvous}.
  virtual Round next_round() = 0;
};

}  // namespace acc
