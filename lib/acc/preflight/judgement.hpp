// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "acc/preflight/node_health.hpp"

namespace acc::launcher {

/// What was checked; to_string() gives the names in JSON.
enum class Check {
  presence,    ///< the node took part
  answer,      ///< driver, disk and resolver answered in time
  devices,     ///< as many GPUs as the others, all of the same kind
  driver,      ///< the version of the others
  ecc,         ///< no memory errors
  slowdown,    ///< the hardware does not lower the clocks
  xid,         ///< no fault in the kernel log
  gpu_memory,  ///< free for the job
  memory,      ///< as much as the others
  clock,       ///< like those of the others
  disk,        ///< room for the log files
  name,        ///< the meeting address and the node's own name resolve
  connection,  ///< every node reaches every other one
  bandwidth,   ///< like that of the others
};
const char* to_string(Check check);

enum class Severity {
  warning,  ///< the job can run
  error,    ///< the job would fail, or crawl: it is not started
};

/// Something that is wrong, or unlike the other nodes.
struct Finding {
  Severity severity = Severity::warning;
  Check check = Check::presence;
  /// The ranks of the nodes that it is about.
  std::vector<int> nodes = {};
  /// Begins with their names.
  std::string text = {};
  /// What to do.
  std::string hint = {};

  bool operator==(const Finding&) const = default;
};

/// Pure: what the observations mean; errors first.
std::vector<Finding> judge(const Observations& observations);

/// Pure: who measured a transfer that judge() will name, the lower rank first. With a node that did not
/// report nothing can be measured again.
std::set<std::pair<int, int>> slow_pairs(const Observations& observations);

/// Of each of the transfers the better of both measurements.
void keep_better(std::vector<Transfer>& transfers, const std::vector<Transfer>& repeats);

bool has_errors(const std::vector<Finding>& findings);

/// The name of a node: its host, with its rank in parentheses where several have the same host; `node 3` for
/// one that did not report.
std::string name_of(const Observations& observations, int rank);

/// How far each node's clock is ahead of the median of all, in seconds, by rank; absent: not known.
std::vector<std::optional<double>> clock_offsets(const Observations& observations);

/// The best that a node sends and receives, in bytes/s; absent: not measured.
std::optional<double> best_sent(const Observations& observations, int rank);
std::optional<double> best_received(const Observations& observations, int rank);

/// `9.4 Gbit/s`, `1.5 GiB`.
std::string bit_rate(double bytes_per_second);
std::string byte_size(std::uint64_t bytes);

}  // namespace acc::launcher
