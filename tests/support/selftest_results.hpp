// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/report/selftest_results.hpp"

namespace acc::test {

/// What a test of `ranks` processes could find, with so many on each host: links within a host have 10 µs and
/// 10 GB/s, others 40 µs and 1 GB/s.
inline launcher::SelftestResults selftest_results(int ranks, int on_host) {
  launcher::SelftestResults results = {.num_processes = ranks, .passed = true, .device = "cpu"};
  results.checks = {{.name = "state", .seconds = 0.01}, {.name = "collectives", .seconds = 0.2}};
  for (int rank = 0; rank < ranks; ++rank) {
    results.hosts.push_back("node" + std::to_string(rank / on_host));
    results.matmuls.push_back({.rank = rank, .seconds = 0.01, .flops_per_second = 27e9});
    results.copies.push_back({.rank = rank, .bytes_per_second = 9e9});
    for (int second = rank + 1; second < ranks; ++second) {
      const bool is_near = rank / on_host == second / on_host;
      results.links.push_back({.first = rank,
                               .second = second,
                               .latency_seconds = is_near ? 10e-6 : 40e-6,
                               .bytes_per_second = is_near ? 10e9 : 1e9});
    }
  }
  if (ranks > 1) results.all_reduces = {{4096, 50e-6, 100e6}, {65536, 100e-6, 900e6}, {1 << 20, 1e-3, 1.5e9}};
  return results;
}

}  // namespace acc::test
