// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// What `acc test` found: its JSON (apps/docs/reference.md). What is absent there is empty here.
struct SelftestResults {
  struct Check {
    std::string name = {};
    double seconds = 0;
    /// The rank that failed and what is wrong; empty: the check passed.
    std::string failure = {};
  };
  /// Between two ranks, the first of which is the lower.
  struct Link {
    int first = 0;
    int second = 0;
    double latency_seconds = 0;
    double bytes_per_second = 0;
    bool latency_outlier = false;
    bool bandwidth_outlier = false;
  };
  struct AllReduce {
    std::int64_t bytes = 0;
    double seconds = 0;
    double bus_bytes_per_second = 0;
  };
  /// A matrix product on a rank.
  struct Matmul {
    int rank = 0;
    double seconds = 0;
    double flops_per_second = 0;
    bool outlier = false;
  };
  /// A copy in the memory of a rank.
  struct Copy {
    int rank = 0;
    double bytes_per_second = 0;
    bool outlier = false;
  };

  /// 0: nothing is known, since the test ended before it could say anything.
  int num_processes = 0;
  bool passed = false;
  std::string error = {};
  std::string device = {};
  std::string mixed_precision = {};
  std::string torch = {};
  /// By rank.
  std::vector<std::string> hosts = {};
  std::vector<Check> checks = {};
  std::vector<Link> links = {};
  std::vector<AllReduce> all_reduces = {};
  std::vector<Matmul> matmuls = {};
  std::vector<Copy> copies = {};
  /// Lines of text.
  std::vector<std::string> outliers = {};
  std::string not_tested = {};

  /// Empty where it is not known.
  std::string host(int rank) const;
};

/// Of text that is no such JSON nothing is known; entries that make no sense are left out.
SelftestResults parse_selftest_results(std::string_view text);

}  // namespace acc::launcher
