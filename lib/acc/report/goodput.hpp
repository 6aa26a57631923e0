// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "acc/report/job_history.hpp"

namespace acc::launcher {

/// Where the time of a job went, in seconds; the parts add up to its wall time. In an attempt each is the
/// mean of the ranks that say how far they are. A step lasts from the end of the one before.
struct TimeShares {
  /// In steps that counted, but for what is below.
  double counted = 0;
  /// In steps that an earlier attempt had ended already.
  double repeated = 0;
  double data = 0;
  double saving = 0;
  double evaluation = 0;
  /// While nodes met for the first time, all ranks hung, or the job was suspended.
  double waiting = 0;
  /// From the start of the first attempt until the first step has ended.
  double starting = 0;
  /// From the last step before a restart until the first step after it has ended.
  double restarting = 0;
  /// After the last step of all.
  double ending = 0;
  /// In attempts of which no rank said how far it was.
  double unknown = 0;

  double total() const {
    return counted + repeated + data + saving + evaluation + waiting + starting + restarting + ending +
           unknown;
  }
};

struct Goodput {
  TimeShares shares = {};
  /// Whether it is known which steps were repeated: they are counted over restarts, or there was no restart.
  bool repeated_is_known = true;
  /// The highest number, and the steps of all attempts and trainings that do not count over restarts.
  std::int64_t steps = 0;
  /// Whether `steps` is that number alone: where its training began, it may be far above what the job ran.
  bool is_highest_step = false;

  /// In steps that counted / all time; 0 for a job that said nothing.
  double ratio() const { return shares.total() > 0 ? shares.counted / shares.total() : 0; }
};

Goodput goodput_of(const JobHistory& history);

}  // namespace acc::launcher
