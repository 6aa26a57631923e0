// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace acc::selftest {

struct CheckResult {
  std::string name = {};
  /// Of the slowest process.
  double seconds = 0;
  /// What is wrong, with the rank that says so; empty: nothing.
  std::string complaint = {};
};

/// What two ranks measured when they talked to each other alone.
struct Link {
  int first = 0;
  int second = 0;
  /// From one to the other: half of the way there and back.
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

/// An all-reduce over all processes. As nccl-tests count it, the bus moves 2(n-1)/n times the bytes.
struct AllReduce {
  std::int64_t bytes = 0;
  double seconds = 0;
  double bus_bytes_per_second = 0;
};

/// How long one matrix multiplication took a rank while all did the same.
struct Compute {
  int rank = 0;
  std::string host = {};
  double seconds = 0;
  double flops_per_second = 0;
};

/// Everything that a run of the self-test found out.
struct Report {
  int num_processes = 1;
  std::string device = {};
  std::string mixed_precision = {};
  std::vector<CheckResult> checks = {};
  std::vector<Link> links = {};
  std::vector<AllReduce> all_reduces = {};
  std::vector<Compute> matmuls = {};
  /// What ended the test before its end; empty: it is complete.
  std::string error = {};

  bool passed() const;
};

/// Ranks and pairs that are much slower than the others, a line each.
std::vector<std::string> outliers(const Report& report);

std::string check_text(const CheckResult& check);
/// The measurements, the outliers, and the verdict.
std::string summary_text(const Report& report);

/// The form of `acc test --json`: schema 1; fields are only added.
nlohmann::json to_json(const Report& report);

}  // namespace acc::selftest
