// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace acc {

/// Where this node stands among the nodes of a job, for one attempt.
struct Round {
  int machine_rank = 0;
  int num_machines = 1;
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 0;

  bool operator==(const Round&) const = default;
};

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
