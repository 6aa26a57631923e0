// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "outliers.hpp"

namespace acc::selftest {

struct CheckResult {
  std::string name = {};
  /// The time of the slowest process.
  double seconds = 0;
  /// The rank that failed and what is wrong; empty if the check passed.
  std::string failure = {};
};

/// The connection between two ranks, measured while nothing else used it.
struct Link {
  int first = 0;
  int second = 0;
  /// Half of a round trip.
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

/// An all-reduce over all processes. The bus bandwidth is that of nccl-tests: 2(n-1)/n times the bytes per
/// second.
struct AllReduce {
  std::int64_t bytes = 0;
  double seconds = 0;
  double bus_bytes_per_second = 0;
};

/// The time of a matrix multiplication on a rank while all ranks did the same.
struct Compute {
  int rank = 0;
  std::string host = {};
  double seconds = 0;
  double flops_per_second = 0;
};

/// The speed at which a rank copied memory while all ranks did the same; each byte counts once.
struct Copy {
  int rank = 0;
  double bytes_per_second = 0;
};

/// The results of a run of the self-test.
struct Report {
  /// Nothing until the processes have met.
  std::optional<int> num_processes = {};
  std::string device = {};
  std::string mixed_precision = {};
  /// The version of LibTorch.
  std::string torch = {};
  /// By rank.
  std::vector<std::string> hosts = {};
  std::vector<CheckResult> checks = {};
  std::vector<Link> links = {};
  std::vector<AllReduce> all_reduces = {};
  std::vector<Compute> matmuls = {};
  std::vector<Copy> copies = {};
  /// Why the test ended early; empty if it is complete.
  std::string error = {};

  bool passed() const;
};

/// Indices in the vectors of a Report, the slowest first. Links within a host are compared with each other,
/// as are those between hosts.
struct Outliers {
  std::vector<Outlier> matmuls = {};
  std::vector<Outlier> copies = {};
  std::vector<Outlier> latencies = {};
  std::vector<Outlier> bandwidths = {};
};
Outliers outliers_of(const Report& report);

/// A line for each rank and pair that is much slower than the others; of many pairs the slowest.
std::vector<std::string> outlier_lines(const Report& report);

std::string check_text(const CheckResult& check);
/// The measurements, the outliers, and the number of checks that passed. Only of processes that have met.
std::string summary_text(const Report& report);

/// The output of `acc test --json`.
nlohmann::json to_json(const Report& report);

/// The partner of `rank` in a round in which all `ranks` are measured in pairs; nothing if it has none. Over
/// rounds 0 to num_rounds(ranks) - 1 each pair is measured once.
std::optional<int> partner_of(int rank, int round, int ranks);
int num_rounds(int ranks);

}  // namespace acc::selftest
