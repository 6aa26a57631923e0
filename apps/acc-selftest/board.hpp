// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace acc::selftest {

/// How far each rank of this machine is, in memory that they share: it is there when no network is.
class Board {
 public:
  /// A rank's process (0: it has not begun) and the step to which it has come.
  struct Place {
    pid_t pid = 0;
    int step = 0;
  };

  /// Shares `file`, an empty one that `acc test` made, between `ranks` processes. Where the file is missing,
  /// as for a rank that runs elsewhere, the board knows its own process alone.
  Board(const std::filesystem::path& file, int ranks);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  bool shared() const { return mapped_ != nullptr; }

  /// Of the process that calls it.
  void come_to(int local_rank, int step);

  /// By local rank; empty where the board is not shared.
  std::vector<Place> places() const;

  /// True for the one process that may tell how the test failed.
  bool claim_report();

 private:
  std::span<std::int32_t> words_ = {};
  void* mapped_ = nullptr;
  std::int32_t own_claim_ = 0;
};

}  // namespace acc::selftest
