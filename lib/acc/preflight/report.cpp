// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "acc/base/text.hpp"
#include "acc/preflight/node_json.hpp"

namespace acc::launcher {
namespace {

const char* severity_name(Severity severity) {
  return severity == Severity::error ? "error" : "warning";
}

/// A column of the table.
struct Column {
  std::string title = {};
  /// A finding of one of these checks marks the cell.
  std::vector<Check> checks = {};
  std::function<std::string(const NodeHealth&)> cell = {};
};

std::string free_of(std::uint64_t free, std::uint64_t total) {
  return fmt::format("{} of {}", byte_size(free), byte_size(total));
}

// Of the GPU with the least.
std::string free_gpu_memory(const NodeHealth& node) {
  const GpuHealth* least = nullptr;
  for (const GpuHealth& gpu : node.gpus)
    if (gpu.free_bytes && (least == nullptr || *gpu.free_bytes < *least->free_bytes)) least = &gpu;
  return least == nullptr ? "-" : free_of(*least->free_bytes, least->gpu.memory_bytes);
}

std::string ecc_text(const NodeHealth& node) {
  std::optional<std::uint64_t> errors;
  for (const GpuHealth& gpu : node.gpus)
    if (gpu.uncorrected_errors) errors = errors.value_or(0) + *gpu.uncorrected_errors;
  const bool reset = std::ranges::any_of(
      node.gpus, [](const GpuHealth& gpu) { return gpu.needs_reset || gpu.needs_repair; });
  if (!errors) return reset ? "needs reset" : "-";
  return fmt::format("{}{}", *errors, reset ? ", needs reset" : "");
}

std::string slowdown_text(const NodeHealth& node) {
  for (const GpuHealth& gpu : node.gpus)
    if (!gpu.slowdowns.empty()) return join(gpu.slowdowns, ", ");
  return "none";
}

std::string xid_text(const NodeHealth& node) {
  if (!node.xids) return "not readable";
  if (node.xids->empty()) return "none";
  std::vector<std::string> numbers;
  for (const Xid& xid : *node.xids) {
    std::string number = fmt::to_string(xid.number);
    if (std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(std::move(number));
  }
  return join(numbers, ",");
}

std::string clock_text(const std::optional<double>& offset) {
  if (!offset) return "-";
  if (!(std::abs(*offset) < 1)) return fmt::format("{:+.1f} s", *offset);
  const auto whole = static_cast<long>(*offset * 1000 + (*offset < 0 ? -0.5 : 0.5));
  return fmt::format("{}{} ms", whole > 0 ? "+" : "", whole);
}

std::string reach_text(const Observations& observations, int rank) {
  const auto is_own = [rank](const ConnectionCheck& connection) { return connection.from == rank; };
  if (std::ranges::none_of(observations.connections, is_own)) return "-";
  const auto failed = std::ranges::count_if(observations.connections, [&](const ConnectionCheck& connection) {
    return is_own(connection) && !connection.error.empty();
  });
  const auto num_others = static_cast<std::ptrdiff_t>(observations.nodes.size()) - 1;
  return fmt::format("{} of {}", num_others - failed, num_others);
}

std::string rate_text(const std::optional<double>& rate) {
  return rate ? bit_rate(*rate) : "-";
}

std::vector<Column> columns_of(const Observations& observations) {
  const bool gpus = std::ranges::any_of(
      observations.nodes, [](const NodeHealth& node) { return !node.gpus.empty() || !node.driver.empty(); });
  std::vector<Column> columns = {{"node",
                                  {Check::presence, Check::answer, Check::name},
                                  [&](const NodeHealth& node) { return name_of(observations, node.rank); }}};
  if (gpus) {
    columns.insert(
        columns.end(),
        {{"GPUs", {Check::devices}, [](const NodeHealth& node) { return fmt::to_string(node.gpus.size()); }},
         {"driver",
          {Check::driver},
          [](const NodeHealth& node) { return node.driver.empty() ? "-" : node.driver; }},
         {"GPU memory free", {Check::gpu_memory}, free_gpu_memory},
         {"ECC errors", {Check::ecc}, ecc_text},
         {"slowdown", {Check::slowdown}, slowdown_text},
         {"Xid", {Check::xid}, xid_text}});
  }
  columns.insert(columns.end(),
                 {{"memory free",
                   {Check::memory},
                   [](const NodeHealth& node) { return free_of(node.free_memory_bytes, node.memory_bytes); }},
                  {"disk free", {Check::disk}, [](const NodeHealth& node) {
                     const bool known = node.disk_error.empty() && node.free_disk_bytes;
                     return known ? byte_size(*node.free_disk_bytes) : "-";
                   }}});
  if (observations.num_nodes == 1) return columns;
  columns.insert(columns.end(),
                 {{"clock",
                   {Check::clock},
                   [offsets = clock_offsets(observations)](const NodeHealth& node) {
                     return clock_text(offsets.at(static_cast<std::size_t>(node.rank)));
                   }},
                  {"reaches",
                   {Check::connection},
                   [&](const NodeHealth& node) { return reach_text(observations, node.rank); }},
                  {"sends",
                   {Check::bandwidth},
                   [&](const NodeHealth& node) { return rate_text(best_sent(observations, node.rank)); }},
                  {"receives", {Check::bandwidth}, [&](const NodeHealth& node) {
                     return rate_text(best_received(observations, node.rank));
                   }}});
  return columns;
}

bool is_marked(const std::vector<Finding>& findings, const Column& column, int rank) {
  return std::ranges::any_of(findings, [&](const Finding& one) {
    return std::ranges::find(column.checks, one.check) != column.checks.end() &&
           std::ranges::find(one.nodes, rank) != one.nodes.end();
  });
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], count_characters(row[i]));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += "  " + row[i] + std::string(widths[i] - count_characters(row[i]), ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

Json findings_to_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"severity", severity_name(finding.severity)},
                    {"check", to_string(finding.check)},
                    {"nodes", finding.nodes},
                    {"text", finding.text},
                    {"hint", finding.hint}});
  }
  return list;
}

}  // namespace

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& one : findings)
    text += fmt::format("{}: {} ({})\n", severity_name(one.severity), one.text, one.hint);
  return text;
}

std::string preflight_text(const Observations& observations, const std::vector<Finding>& findings) {
  const std::vector<Column> columns = columns_of(observations);
  std::vector<std::vector<std::string>> rows(1);
  for (const Column& column : columns) rows[0].push_back(column.title);
  for (const NodeHealth& node : observations.nodes) {
    auto& row = rows.emplace_back();
    for (const Column& column : columns)
      row.push_back(column.cell(node) + (is_marked(findings, column, node.rank) ? " !" : ""));
  }
  return fmt::format("preflight of {}, {:.1f} s\n{}{}", pluralize(observations.num_nodes, "node"),
                     observations.seconds, aligned(rows), findings_text(findings));
}

std::string preflight_json(const Observations& observations, const std::vector<Finding>& findings) {
  Json nodes = Json::array();
  const auto offsets = clock_offsets(observations);
  for (const NodeHealth& node : observations.nodes) {
    Json object = to_json(node);
    object["clock_offset_seconds"] = or_null(offsets.at(static_cast<std::size_t>(node.rank)));
    nodes.push_back(std::move(object));
  }
  Json connections = Json::array();
  for (const ConnectionCheck& connection : observations.connections)
    connections.push_back(to_json(connection));
  Json transfers = Json::array();
  for (const Transfer& transfer : observations.transfers) transfers.push_back(to_json(transfer));
  return to_text({{"schema", 1},
                  {"passed", !has_errors(findings)},
                  {"seconds", observations.seconds},
                  {"num_nodes", observations.num_nodes},
                  {"nodes", nodes},
                  {"connections", connections},
                  {"transfers", transfers},
                  {"findings", findings_to_json(findings)}});
}

std::string refusal_text(const std::vector<Finding>& findings, int num_nodes) {
  std::vector<std::string> errors;
  for (const Finding& one : findings)
    if (one.severity == Severity::error) errors.push_back(one.text);
  constexpr std::size_t kShown = 3;
  const std::size_t more = errors.size() > kShown ? errors.size() - kShown : 0;
  errors.resize(errors.size() - more);
  return fmt::format("the preflight failed: {}{}{}", join(errors, "; "),
                     more > 0 ? fmt::format("; {} more", more) : "",
                     num_nodes > 1 ? "; the table is on node 0" : "");
}

std::string encode(const std::vector<Finding>& findings) {
  return to_text(findings_to_json(findings));
}

std::vector<Finding> decode_findings(std::string_view text) {
  std::vector<Finding> findings;
  for (const Json& object : Json::parse(text)) {
    Finding& finding = findings.emplace_back();
    finding.severity = object.at("severity") == "error" ? Severity::error : Severity::warning;
    const std::string check = object.at("check");
    for (int number = 0; number <= static_cast<int>(Check::bandwidth); ++number)
      if (check == to_string(static_cast<Check>(number))) finding.check = static_cast<Check>(number);
    for (const Json& node : object.at("nodes")) finding.nodes.push_back(exact_number<int>(node));
    object.at("text").get_to(finding.text);
    object.at("hint").get_to(finding.hint);
  }
  return findings;
}

}  // namespace acc::launcher
