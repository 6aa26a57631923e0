// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "acc/base/text.hpp"

namespace acc::selftest {
namespace {

// The threshold for latencies is higher, since latencies between ranks of a machine vary with shared caches
// and cores.
constexpr double kSlowRank = 1.5;
constexpr double kSlowLink = 4;

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

std::string size_text(std::int64_t bytes) {
  return bytes < 1 << 20 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} MiB", bytes >> 20);
}

std::string rate_text(double bytes_per_second) {
  return bytes_per_second < 1e9 ? fmt::format("{:.0f} MB/s", bytes_per_second / 1e6)
                                : fmt::format("{:.1f} GB/s", bytes_per_second / 1e9);
}

std::string row(std::string_view name, std::string_view text) {
  return fmt::format("{:<24} {}\n", name, text);
}

std::string links_text(const std::vector<Link>& links) {
  const auto slowest = std::ranges::max_element(links, {}, &Link::latency_seconds);
  const std::string speed =
      fmt::format("{}, {}", time_text(slowest->latency_seconds), rate_text(slowest->bytes_per_second));
  if (links.size() == 1) return row("links", "ranks 0 and 1 reach each other: " + speed);
  return row("links", fmt::format("all {} pairs reach each other; the slowest, {} and {}: {}", links.size(),
                                  slowest->first, slowest->second, speed));
}

std::size_t passed_checks(const Report& report) {
  return static_cast<std::size_t>(std::ranges::count(report.checks, std::string(), &CheckResult::failure));
}

}  // namespace

bool Report::passed() const {
  return error.empty() && passed_checks(*this) == checks.size();
}

std::vector<std::string> outliers(const Report& report) {
  std::vector<std::string> lines;
  std::vector<double> seconds;
  for (const Compute& compute : report.matmuls) seconds.push_back(compute.seconds);
  if (const auto outlier = find_outlier(seconds, kSlowRank)) {
    const Compute& slow = report.matmuls[outlier->index];
    lines.push_back(fmt::format("rank {} on {} is slow to compute: {:.1f} times the others' time", slow.rank,
                                slow.host, outlier->factor));
  }
  seconds.clear();
  for (const Link& link : report.links) seconds.push_back(link.latency_seconds);
  if (const auto outlier = find_outlier(seconds, kSlowLink)) {
    const Link& slow = report.links[outlier->index];
    lines.push_back(fmt::format("ranks {} and {} have a slow connection: {:.1f} times the other pairs' time",
                                slow.first, slow.second, outlier->factor));
  }
  return lines;
}

std::string check_text(const CheckResult& check) {
  return row(check.name, fmt::format("{} ({})", check.failure.empty() ? "ok" : "FAILED: " + check.failure,
                                     time_text(check.seconds)));
}

std::string summary_text(const Report& report) {
  std::string text;
  if (!report.links.empty()) text += links_text(report.links);
  for (const AllReduce& one : report.all_reduces) {
    text += row("all-reduce of " + size_text(one.bytes),
                fmt::format("{}, {}", time_text(one.seconds), rate_text(one.bus_bytes_per_second)));
  }
  for (const Compute& one : report.matmuls) {
    text += row(
        fmt::format("matmul, rank {}", one.rank),
        fmt::format("{}, {:.1f} GFLOP/s, {}", time_text(one.seconds), one.flops_per_second / 1e9, one.host));
  }
  for (const std::string& line : outliers(report)) text += row("outlier", line);
  return text + fmt::format("{} of {} checks passed on {}\n", passed_checks(report), report.checks.size(),
                            pluralize(report.num_processes, "process"));
}

nlohmann::json to_json(const Report& report) {
  using nlohmann::json;
  json checks = json::array();
  for (const CheckResult& one : report.checks) {
    checks.push_back({{"name", one.name},
                      {"passed", one.failure.empty()},
                      {"seconds", one.seconds},
                      {"failure", one.failure}});
  }
  json links = json::array();
  for (const Link& one : report.links) {
    links.push_back({{"ranks", {one.first, one.second}},
                     {"latency_seconds", one.latency_seconds},
                     {"bytes_per_second", one.bytes_per_second}});
  }
  json all_reduces = json::array();
  for (const AllReduce& one : report.all_reduces) {
    all_reduces.push_back(
        {{"bytes", one.bytes}, {"seconds", one.seconds}, {"bus_bytes_per_second", one.bus_bytes_per_second}});
  }
  json matmuls = json::array();
  for (const Compute& one : report.matmuls) {
    matmuls.push_back({{"rank", one.rank},
                       {"host", one.host},
                       {"seconds", one.seconds},
                       {"flops_per_second", one.flops_per_second}});
  }
  return {{"schema", 1},
          {"passed", report.passed()},
          {"error", report.error},
          {"num_processes", report.num_processes},
          {"device", report.device},
          {"mixed_precision", report.mixed_precision},
          {"checks", std::move(checks)},
          {"links", std::move(links)},
          {"all_reduce", std::move(all_reduces)},
          {"matmul", std::move(matmuls)},
          {"outliers", outliers(report)}};
}

std::optional<Outlier> find_outlier(std::span<const double> seconds, double factor) {
  if (seconds.size() < 2) return std::nullopt;
  const auto longest = std::ranges::max_element(seconds);
  const auto index = static_cast<std::size_t>(std::distance(seconds.begin(), longest));
  std::vector<double> others(seconds.begin(), seconds.end());
  others.erase(others.begin() + std::distance(seconds.begin(), longest));
  const auto middle = others.begin() + std::ssize(others) / 2;
  std::ranges::nth_element(others, middle);
  if (*longest <= factor * *middle) return std::nullopt;
  return Outlier{.index = index, .factor = *longest / *middle};
}

int num_rounds(int ranks) {
  return ranks % 2 == 0 ? ranks - 1 : ranks;
}

// The circle method of round-robin tournaments: one rank is fixed, i and j of the others are paired in round
// (i + j) mod rounds.
std::optional<int> partner_of(int rank, int round, int ranks) {
  const int rounds = num_rounds(ranks);
  const int fixed = rounds;  // exists only if the number is even
  int partner = 0;
  if (rank == fixed) {
    partner = round * ((rounds + 1) / 2) % rounds;  // solves 2 * partner = round modulo rounds
  } else {
    partner = (round - rank + rounds) % rounds;
    if (partner == rank) partner = fixed;
  }
  return partner < ranks ? std::optional(partner) : std::nullopt;
}

}  // namespace acc::selftest
