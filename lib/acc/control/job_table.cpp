// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "acc/base/printable.hpp"
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
std::string doing(const ProgressView& progress) {
  const std::string text = section_text(progress);
  return progress.slow_in.empty() ? text : text + ", slow in " + progress.slow_in;
}

// `0.213 s`
std::string short_time(ProgressView::Seconds time) {
  return fmt::format("{:.3g} s", time.count());
}

Row progress_of(const RankView& rank) {
  if (!rank.progress) return {"-", "-", "-", "-"};
  const ProgressView& progress = *rank.progress;
  return {fmt::to_string(progress.steps), progress.step_time ? short_time(*progress.step_time) : "-",
          progress.loss ? fmt::format("{:.4g}", *progress.loss) : "-",
          rank.ended.empty() ? doing(progress) : "-"};
}

Row row_of(const RankView& rank, const RankUsage& usage) {
  const bool alive = usage.processes > 0;
  return {fmt::to_string(rank.rank),
          fmt::to_string(rank.local_rank),
          fmt::to_string(rank.pid),
          usage.state,
          alive ? short_duration(usage.uptime) : "-",
          usage.cpu_percent ? fmt::format("{:.0f}", *usage.cpu_percent) : "-",
          alive ? short_size(usage.memory_bytes) : "-",
          alive ? fmt::to_string(usage.threads) : "-",
          gpus_of(usage)};
}

// After the state: a narrow terminal cuts off the end.
void insert(Row& row, const Row& progress) {
  row.insert(row.begin() + 4, progress.begin(), progress.end());
}

// Progress has columns where a rank says how far it is.
std::vector<Row> rows_of(const JobUsage& usage) {
  const std::vector<RankView>& ranks = usage.job.ranks;
  const bool progress =
      std::ranges::any_of(ranks, [](const RankView& rank) { return rank.progress.has_value(); });
  std::vector<Row> rows = {{"RANK", "LOCAL", "PID", "STATE", "UP", "CPU%", "MEMORY", "THREADS", "GPU"}};
  for (std::size_t i = 0; i < ranks.size(); ++i) rows.push_back(row_of(ranks[i], usage.ranks.at(i)));
  if (!progress) return rows;
  insert(rows.front(), {"STEP", "TIME", "LOSS", "SECTION"});
  for (std::size_t i = 0; i < ranks.size(); ++i) insert(rows[i + 1], progress_of(ranks[i]));
  return rows;
}

std::string aligned(const std::vector<Row>& rows, int width) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
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
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(now - importing.started);
  return fmt::format("  {} for {} (--preload, pid {})", to_string(importing), short_duration(took),
                     importing.pid);
}

std::string cut(const std::string& line, int width) {
  return cut_characters(printable(line), static_cast<std::size_t>(width)) + "\n";
}

}  // namespace

std::string job_table(const std::vector<JobUsage>& jobs, std::chrono::system_clock::time_point now,
                      int width) {
  std::string text;
  for (const JobUsage& one : jobs) {
    const JobView& job = one.job;
    const auto uptime = std::chrono::duration_cast<std::chrono::milliseconds>(now - job.started);
    const std::string node = job.rendezvous.empty() ? "" : "  node " + job.rendezvous;
    const std::string head =
        fmt::format("{}  run id {}  up {}  restarts {} of {}{}  {}", job.id, job.run_id,
                    short_duration(uptime), job.attempt, job.max_restarts, node, join(job.command, " "));
    if (!text.empty()) text += "\n";
    text += cut(head, width);
    if (job.importing) text += cut(import_line(*job.importing, now), width);
    text += aligned(rows_of(one), width);
  }
  return text;
}

nlohmann::json job_list(const std::vector<JobUsage>& jobs) {
  nlohmann::json list = nlohmann::json::array();
  for (const JobUsage& one : jobs) {
    nlohmann::json job = to_json(one.job);
    for (std::size_t i = 0; i < one.ranks.size(); ++i) {
      const RankUsage& usage = one.ranks[i];
      nlohmann::json& rank = job["ranks"].at(i);
      rank["state"] = usage.state;
      rank["uptime_ms"] = usage.uptime.count();
      rank["cpu_percent"] = usage.cpu_percent ? nlohmann::json(*usage.cpu_percent) : nlohmann::json(nullptr);
      rank["memory_bytes"] = usage.memory_bytes;
      rank["processes"] = usage.processes;
      rank["threads"] = usage.threads;
      rank["gpus"] = nlohmann::json::array();
      for (const RankGpu& gpu : usage.gpus) {
        rank["gpus"].push_back(
            {{"index", gpu.index},
             {"memory_bytes", gpu.memory_bytes},
             {"use_percent", gpu.use ? nlohmann::json(*gpu.use) : nlohmann::json(nullptr)}});
      }
    }
    list.push_back(job);
  }
  return list;
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

std::string short_size(std::uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20U);
  if (mib < 1024) return fmt::format("{:.{}f} MiB", mib, mib < 10 ? 1 : 0);
  return fmt::format("{:.1f} GiB", mib / 1024);
}

}  // namespace acc::launcher
