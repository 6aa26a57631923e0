// SPDX-License-Identifier: Apache-2.0
#include "acc/report/selftest_results.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "acc/report/event_lines.hpp"

namespace acc::launcher {
namespace {

using nlohmann::json;

bool flag_in(const json& object, const char* field) {
  const auto value = object.find(field);
  return value != object.end() && *value == true;
}

std::optional<int> rank_of(const json& value) {
  const auto rank = integer_of(value);
  return rank && *rank >= 0 && *rank < kMaxRanks ? std::optional(static_cast<int>(*rank)) : std::nullopt;
}

// Greater than 0: it is divided by, and has a logarithm.
std::optional<double> measure_in(const json& object, const char* field) {
  const auto number = number_in(object, field);
  return number && *number > 0 ? number : std::nullopt;
}

// What `parse` makes of the objects in an array, without those of which it makes nothing.
template <class Parse>
auto parse_all(const json& report, const char* field, Parse parse) {
  std::vector<typename decltype(parse(report))::value_type> results;
  for (const json& object : array_in(report, field)) {
    if (!object.is_object()) continue;
    if (auto result = parse(object)) results.push_back(std::move(*result));
  }
  return results;
}

std::optional<SelftestResults::Check> parse_check(const json& object) {
  return SelftestResults::Check{.name = text_in(object, "name"),
                                .seconds = number_in(object, "seconds").value_or(0),
                                .failure = text_in(object, "failure")};
}

std::optional<SelftestResults::Link> parse_link(const json& object) {
  const json& ranks = array_in(object, "ranks");
  if (ranks.size() != 2) return std::nullopt;
  const auto first = rank_of(ranks[0]);
  const auto second = rank_of(ranks[1]);
  const auto latency = measure_in(object, "latency_seconds");
  const auto bandwidth = measure_in(object, "bytes_per_second");
  if (!first || !second || *first >= *second || !latency || !bandwidth) return std::nullopt;
  return SelftestResults::Link{.first = *first,
                               .second = *second,
                               .latency_seconds = *latency,
                               .bytes_per_second = *bandwidth,
                               .latency_outlier = flag_in(object, "latency_outlier"),
                               .bandwidth_outlier = flag_in(object, "bandwidth_outlier")};
}

std::optional<SelftestResults::AllReduce> parse_all_reduce(const json& object) {
  const auto bytes = integer_in(object, "bytes");
  const auto seconds = measure_in(object, "seconds");
  const auto bandwidth = measure_in(object, "bus_bytes_per_second");
  if (bytes.value_or(0) <= 0 || !seconds || !bandwidth) return std::nullopt;
  return SelftestResults::AllReduce{.bytes = *bytes, .seconds = *seconds, .bus_bytes_per_second = *bandwidth};
}

std::optional<SelftestResults::Matmul> parse_matmul(const json& object) {
  const auto rank = rank_of(object.value("rank", json()));
  const auto seconds = measure_in(object, "seconds");
  if (!rank || !seconds) return std::nullopt;
  return SelftestResults::Matmul{.rank = *rank,
                                 .seconds = *seconds,
                                 .flops_per_second = number_in(object, "flops_per_second").value_or(0),
                                 .outlier = flag_in(object, "outlier")};
}

std::optional<SelftestResults::Copy> parse_copy(const json& object) {
  const auto rank = rank_of(object.value("rank", json()));
  const auto bandwidth = measure_in(object, "bytes_per_second");
  if (!rank || !bandwidth) return std::nullopt;
  return SelftestResults::Copy{
      .rank = *rank, .bytes_per_second = *bandwidth, .outlier = flag_in(object, "outlier")};
}

std::vector<std::string> texts_in(const json& report, const char* field) {
  std::vector<std::string> texts;
  for (const json& text : array_in(report, field))
    texts.push_back(text.is_string() ? text.get<std::string>() : std::string());
  return texts;
}

}  // namespace

std::string SelftestResults::host(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return index < hosts.size() ? hosts[index] : std::string();
}

SelftestResults parse_selftest_results(std::string_view text) {
  const json report = json::parse(text, nullptr, false);
  if (!report.is_object()) return {};
  SelftestResults results = {.passed = flag_in(report, "passed"),
                             .error = text_in(report, "error"),
                             .device = text_in(report, "device"),
                             .mixed_precision = text_in(report, "mixed_precision"),
                             .torch = text_in(report, "torch"),
                             .hosts = texts_in(report, "hosts"),
                             .checks = parse_all(report, "checks", parse_check),
                             .links = parse_all(report, "links", parse_link),
                             .all_reduces = parse_all(report, "all_reduce", parse_all_reduce),
                             .matmuls = parse_all(report, "matmul", parse_matmul),
                             .copies = parse_all(report, "memory", parse_copy),
                             .outliers = texts_in(report, "outliers"),
                             .not_tested = text_in(report, "not_tested")};
  results.num_processes = rank_of(report.value("num_processes", json())).value_or(0);
  return results;
}

}  // namespace acc::launcher
