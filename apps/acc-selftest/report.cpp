// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "acc/base/text.hpp"

namespace acc::selftest {
namespace {

constexpr double kSlowRank = 1.5;
constexpr double kSlowNetwork = 1.5;
// Higher, since links between ranks of a host vary with shared caches and cores.
constexpr double kSlowWithinHost = 4;

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

std::string memory_text(const std::vector<Copy>& copies) {
  const Copy& slowest = *std::ranges::min_element(copies, {}, &Copy::bytes_per_second);
  return row("memory", fmt::format("{}rank {} copies at {}", copies.size() == 1 ? "" : "the slowest, ",
                                   slowest.rank, rate_text(slowest.bytes_per_second)));
}

bool is_within_host(const Report& report, const Link& link) {
  const auto host = [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    return index < report.hosts.size() ? report.hosts[index] : std::string();
  };
  return host(link.first) == host(link.second);
}

// Of the links within hosts, or of those between them, by a figure of which more is worse.
template <class Figure>
std::vector<Outlier> slow_links(const Report& report, bool within_host, Figure figure) {
  std::vector<std::size_t> indices;
  std::vector<double> values;
  for (std::size_t i = 0; i < report.links.size(); ++i) {
    if (is_within_host(report, report.links[i]) != within_host) continue;
    indices.push_back(i);
    values.push_back(figure(report.links[i]));
  }
  std::vector<Outlier> slow = find_outliers(values, within_host ? kSlowWithinHost : kSlowNetwork);
  for (Outlier& outlier : slow) outlier.index = indices[outlier.index];
  return slow;
}

template <class Figure>
std::vector<Outlier> slow_links(const Report& report, Figure figure) {
  std::vector<Outlier> slow = slow_links(report, true, figure);
  std::ranges::copy(slow_links(report, false, figure), std::back_inserter(slow));
  std::ranges::stable_sort(slow, std::ranges::greater(), &Outlier::factor);
  return slow;
}

template <class Result, class Figure>
std::vector<Outlier> slow_ranks(const std::vector<Result>& results, Figure figure) {
  std::vector<double> values;
  for (const Result& result : results) values.push_back(figure(result));
  return find_outliers(values, kSlowRank);
}

void add_slow_links(std::vector<std::string>& lines, const Report& report, const std::vector<Outlier>& slow,
                    const char* figure) {
  constexpr std::size_t kMaxLines = 8;
  for (std::size_t i = 0; i < std::min(slow.size(), kMaxLines); ++i) {
    const Link& link = report.links[slow[i].index];
    lines.push_back(
        fmt::format("ranks {} and {} have a slow connection: {:.1f} times the {} of the other pairs",
                    link.first, link.second, slow[i].factor, figure));
  }
  if (slow.size() > kMaxLines)
    lines.push_back(fmt::format("and {} more, by {}", pluralize(slow.size() - kMaxLines, "pair"), figure));
}

std::set<std::size_t> indices_of(const std::vector<Outlier>& outliers) {
  std::set<std::size_t> indices;
  for (const Outlier& outlier : outliers) indices.insert(outlier.index);
  return indices;
}

// An array of what `entry` says of each result and its index.
template <class Result, class Entry>
nlohmann::json array_of(const std::vector<Result>& results, Entry entry) {
  nlohmann::json array = nlohmann::json::array();
  for (std::size_t i = 0; i < results.size(); ++i) array.push_back(entry(results[i], i));
  return array;
}

std::size_t passed_checks(const Report& report) {
  return static_cast<std::size_t>(std::ranges::count(report.checks, std::string(), &CheckResult::failure));
}

}  // namespace

bool Report::passed() const {
  return error.empty() && passed_checks(*this) == checks.size();
}

Outliers outliers_of(const Report& report) {
  return {.matmuls = slow_ranks(report.matmuls, [](const Compute& one) { return one.seconds; }),
          .copies = slow_ranks(report.copies, [](const Copy& one) { return 1 / one.bytes_per_second; }),
          .latencies = slow_links(report, [](const Link& one) { return one.latency_seconds; }),
          .bandwidths = slow_links(report, [](const Link& one) { return 1 / one.bytes_per_second; })};
}

std::vector<std::string> outlier_lines(const Report& report) {
  std::vector<std::string> lines;
  const Outliers outliers = outliers_of(report);
  for (const Outlier& outlier : outliers.matmuls) {
    const Compute& slow = report.matmuls[outlier.index];
    lines.push_back(fmt::format("rank {} on {} is slow to compute: {:.1f} times the others' time", slow.rank,
                                slow.host, outlier.factor));
  }
  for (const Outlier& outlier : outliers.copies)
    lines.push_back(fmt::format("rank {} has slow memory: {:.1f} times the others' time",
                                report.copies[outlier.index].rank, outlier.factor));
  add_slow_links(lines, report, outliers.latencies, "latency");
  add_slow_links(lines, report, outliers.bandwidths, "transfer time");
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
  if (!report.copies.empty()) text += memory_text(report.copies);
  for (const std::string& line : outlier_lines(report)) text += row("outlier", line);
  return text + fmt::format("{} of {} checks passed on {}\n", passed_checks(report), report.checks.size(),
                            pluralize(report.num_processes.value(), "process"));
}

nlohmann::json to_json(const Report& report) {
  using nlohmann::json;
  const Outliers outliers = outliers_of(report);
  const auto matmuls = indices_of(outliers.matmuls);
  const auto copies = indices_of(outliers.copies);
  const auto latencies = indices_of(outliers.latencies);
  const auto bandwidths = indices_of(outliers.bandwidths);
  const auto check = [](const CheckResult& one, std::size_t) {
    return json{{"name", one.name},
                {"passed", one.failure.empty()},
                {"seconds", one.seconds},
                {"failure", one.failure}};
  };
  const auto link = [&](const Link& one, std::size_t i) {
    return json{{"ranks", {one.first, one.second}},
                {"latency_seconds", one.latency_seconds},
                {"bytes_per_second", one.bytes_per_second},
                {"latency_outlier", latencies.contains(i)},
                {"bandwidth_outlier", bandwidths.contains(i)}};
  };
  const auto all_reduce = [](const AllReduce& one, std::size_t) {
    return json{
        {"bytes", one.bytes}, {"seconds", one.seconds}, {"bus_bytes_per_second", one.bus_bytes_per_second}};
  };
  const auto matmul = [&](const Compute& one, std::size_t i) {
    return json{{"rank", one.rank},
                {"host", one.host},
                {"seconds", one.seconds},
                {"flops_per_second", one.flops_per_second},
                {"outlier", matmuls.contains(i)}};
  };
  const auto copy = [&](const Copy& one, std::size_t i) {
    return json{
        {"rank", one.rank}, {"bytes_per_second", one.bytes_per_second}, {"outlier", copies.contains(i)}};
  };
  return {{"schema", 1},
          {"passed", report.passed()},
          {"error", report.error},
          {"num_processes", report.num_processes ? json(*report.num_processes) : json()},
          {"device", report.device},
          {"mixed_precision", report.mixed_precision},
          {"torch", report.torch},
          {"hosts", report.hosts},
          {"checks", array_of(report.checks, check)},
          {"links", array_of(report.links, link)},
          {"all_reduce", array_of(report.all_reduces, all_reduce)},
          {"matmul", array_of(report.matmuls, matmul)},
          {"memory", array_of(report.copies, copy)},
          {"outliers", outlier_lines(report)}};
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
