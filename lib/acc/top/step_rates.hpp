// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "acc/control/job_table.hpp"

namespace acc::launcher {

/// What a rank did in the last seconds. Absent: it does not say, or not yet.
struct StepRates {
  std::optional<double> steps_per_second = {};
  /// Of its time, from 0 to 1: in `data`, and in `communication`. What DDP exchanges during backward is in
  /// neither.
  std::optional<double> data_share = {};
  std::optional<double> communication_share = {};

  bool operator==(const StepRates&) const = default;
};

/// Derives rates from readings of the same jobs, one after the other.
class RateWindow {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// The rates are those of the last `length`, from one reading to another.
  explicit RateWindow(std::chrono::milliseconds length = std::chrono::seconds(5)) : length_(length) {}

  /// Ranks of this machine were read at `now`, those of others when they were reported. Jobs and ranks that
  /// are not among them are forgotten; a rank that was restarted begins anew.
  void observe(const std::vector<JobUsage>& jobs, TimePoint now);

  StepRates rates_of(const std::string& job, int rank) const;

 private:
  struct Reading {
    TimePoint time = {};
    ProgressView progress = {};
  };
  struct RankReadings {
    pid_t pid = 0;
    std::deque<Reading> readings = {};
  };
  using RankKey = std::pair<std::string, int>;
  using RankMap = std::map<RankKey, RankReadings>;

  void observe(const std::string& job, const std::vector<RankView>& ranks, TimePoint time,
               RankMap& current_ranks);
  void add(RankReadings& rank, const RankView& view, TimePoint now) const;

  std::chrono::milliseconds length_;
  RankMap ranks_ = {};
};

}  // namespace acc::launcher
