// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "acc/base/printable.hpp"
#include "acc/base/short_size.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

using Row = std::vector<std::string>;

std::string gpus_of(const RankUsage& usage) {
  std::vector<std::string> parts;
  for (const RankGpu& gpu : usage.gpus) {
    const std::string use = gpu.use ? fmt::format(" {}%", *gpu.use) : "";
    parts.push_back(fmt::format("{}:{} {}", gpu.index, use, short_size(gpu.memory_bytes)));
  }
  return parts.empty() ? "-" : join(parts, ", ");
}

// With `, slow in data` of a straggler.
std::string activity_text(const ProgressView& progress) {
  const std::string text = section_text(progress);
  return progress.slow_in.empty() ? text : text + ", slow in " + progress.slow_in;
}

Row progress_of(const RankView& rank) {
  if (!rank.progress) return {"-", "-", "-", "-"};
  const ProgressView& progress = *rank.progress;
  return {fmt::to_string(progress.steps),
          progress.step_time ? rounded_seconds_text(*progress.step_time) : "-",
          progress.loss ? fmt::format("{:.4g}", *progress.loss) : "-",
          rank.ended.empty() ? activity_text(progress) : "-"};
}

/// A rank and the node that it is of; nullptr: this one.
struct RankLine {
  const RankView* view = nullptr;
  const RankUsage* usage = nullptr;
  const NodeView* node = nullptr;
};

std::vector<RankLine> lines_of(const JobUsage& job) {
  std::vector<RankLine> lines;
  for (std::size_t i = 0; i < job.job.ranks.size(); ++i)
    lines.push_back({&job.job.ranks[i], &job.ranks.at(i)});
  for (const NodeView& node : job.other_nodes.nodes) {
    for (std::size_t i = 0; i < node.ranks.size(); ++i)
      lines.push_back({&node.ranks[i], &node.usage.at(i), &node});
  }
  std::ranges::stable_sort(lines, {}, [](const RankLine& line) { return line.view->rank; });
  return lines;
}

Row row_of(const RankLine& line) {
  const RankView& rank = *line.view;
  const RankUsage& usage = *line.usage;
  const bool alive = usage.processes > 0;
  return {fmt::to_string(rank.rank),
          fmt::to_string(rank.local_rank),
          fmt::to_string(rank.pid),
          line.node == nullptr ? usage.state : shown_state(*line.node, usage),
          alive ? short_duration(usage.uptime) : "-",
          usage.cpu_percent ? fmt::format("{:.0f}", *usage.cpu_percent) : "-",
          alive ? short_size(usage.memory_bytes) : "-",
          alive ? fmt::to_string(usage.threads) : "-",
          gpus_of(usage)};
}

// After the state: a narrow terminal cuts off the end.
void insert_progress(std::vector<Row>& rows, const std::vector<RankLine>& lines) {
  constexpr auto kColumn = 4;
  const auto insert = [](Row& row, const Row& progress) {
    row.insert(row.begin() + kColumn, progress.begin(), progress.end());
  };
  insert(rows.front(), {"STEP", "TIME", "LOSS", "SECTION"});
  for (std::size_t i = 0; i < lines.size(); ++i) insert(rows[i + 1], progress_of(*lines[i].view));
}

void insert_hosts(std::vector<Row>& rows, const std::vector<RankLine>& lines, const OtherNodes& other_nodes) {
  rows.front().insert(rows.front().begin() + 1, "HOST");
  for (std::size_t i = 0; i < lines.size(); ++i)
    rows[i + 1].insert(rows[i + 1].begin() + 1,
                       lines[i].node == nullptr ? other_nodes.host : lines[i].node->host);
}

// Progress has columns where a rank says how far it is, and hosts have one where there are several.
std::vector<Row> rows_of(const JobUsage& job) {
  const std::vector<RankLine> lines = lines_of(job);
  std::vector<Row> rows = {{"RANK", "LOCAL", "PID", "STATE", "UP", "CPU%", "MEMORY", "THREADS", "GPU"}};
  for (const RankLine& line : lines) rows.push_back(row_of(line));
  if (std::ranges::any_of(lines, [](const RankLine& line) { return line.view->progress.has_value(); }))
    insert_progress(rows, lines);
  if (!job.other_nodes.nodes.empty()) insert_hosts(rows, lines, job.other_nodes);
  return rows;
}

std::string aligned(std::vector<Row> rows, int width) {
  std::vector<std::size_t> widths(rows.front().size());
  for (Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable_line(row[i]);
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format(" {:<{}} ", row[i], widths[i]);
    line.resize(std::min<std::size_t>(line.find_last_not_of(' ') + 1, static_cast<std::size_t>(width)));
    text += line + "\n";
  }
  return text;
}

std::string import_line(const ImportView& importing, std::chrono::system_clock::time_point now) {
  const auto duration = std::chrono::duration_cast<std::chrono::milliseconds>(now - importing.started);
  return fmt::format("  {} for {} (--preload, pid {})", to_string(importing), short_duration(duration),
                     importing.pid);
}

std::string progress_of_job(const JobView& job) {
  const std::string restarts = fmt::format("restarts {} of {}", job.attempt, job.max_restarts);
  const std::string hosts = "on " + pluralize(static_cast<std::uint64_t>(job.hosts), "host");
  // How many there may be is known when a host has told its ranks.
  if (job.hosts > 0) return job.max_restarts == 0 ? hosts : restarts + "  " + hosts;
  return restarts + (job.rendezvous.empty() ? "" : "  node " + job.rendezvous);
}

std::string cut(const std::string& line, int width) {
  return cut_characters(printable_line(line), static_cast<std::size_t>(width)) + "\n";
}

}  // namespace

std::string job_table(const std::vector<JobUsage>& jobs, std::chrono::system_clock::time_point now,
                      int width) {
  std::string text;
  for (const JobUsage& usage : jobs) {
    const JobView& job = usage.job;
    const auto uptime = std::chrono::duration_cast<std::chrono::milliseconds>(now - job.started);
    const std::string head =
        fmt::format("{}  run id {}  up {}  {}  {}", job.id, job.run_id, short_duration(uptime),
                    progress_of_job(job), join(job.command, " "));
    if (!text.empty()) text += "\n";
    text += cut(head, width);
    if (job.importing) text += cut(import_line(*job.importing, now), width);
    text += aligned(rows_of(usage), width);
    for (const std::string& line : lines_of_missing(job, usage.other_nodes)) text += cut("  " + line, width);
  }
  return text;
}

nlohmann::json job_list(const std::vector<JobUsage>& jobs) {
  nlohmann::json list = nlohmann::json::array();
  for (const JobUsage& usage : jobs) {
    nlohmann::json job = to_json(usage.job);
    job["ranks"] = to_json(usage.job.ranks, usage.ranks);
    job["nodes"] = nlohmann::json::array();
    for (const NodeView& node : usage.other_nodes.nodes) job["nodes"].push_back(to_json(node));
    job["nodes_problem"] =
        usage.other_nodes.reason.empty() ? nlohmann::json() : nlohmann::json(usage.other_nodes.reason);
    list.push_back(std::move(job));
  }
  return list;
}

NodeReports reports_of(const JobUsage& job) {
  const auto text_of = [](const std::vector<RankView>& ranks, const std::vector<RankUsage>& usage) {
    return to_json(ranks, usage).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  NodeReports reports = {.reason = job.other_nodes.reason,
                         .world_size = job.job.world_size,
                         .attempt = job.job.attempt,
                         .max_restarts = job.job.max_restarts};
  reports.nodes.push_back(
      {.node_rank = job.other_nodes.node_rank,
       .host = job.other_nodes.host,
       .workers = static_cast<int>(job.job.ranks.size()) + unstarted_ranks(job.job, job.other_nodes),
       .age = std::chrono::milliseconds(0),
       .ranks = text_of(job.job.ranks, job.ranks)});
  for (const NodeView& node : job.other_nodes.nodes) {
    reports.nodes.push_back({.node_rank = node.node_rank,
                             .host = node.host,
                             .workers = node.workers,
                             .first_rank = node.first_rank,
                             .problem = node.problem,
                             .age = node.age,
                             .ranks = text_of(node.ranks, node.usage)});
  }
  std::ranges::stable_sort(reports.nodes, {}, &NodeReport::node_rank);
  return reports;
}

std::string section_text(const ProgressView& progress) {
  const bool waits = !progress.collective.empty();
  const std::string& name = waits ? progress.collective : progress.section;
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(waits ? progress.in_collective
                                                                                 : progress.in_section);
  return since.count() < 1000 ? name : name + " " + short_duration(since);
}

std::string short_duration(std::chrono::milliseconds duration) {
  const std::int64_t seconds = std::max<std::int64_t>(duration.count() / 1000, 0);
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d{:02}h", seconds / 86400, seconds / 3600 % 24);
}

}  // namespace acc::launcher
