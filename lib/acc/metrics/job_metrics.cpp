// SPDX-License-Identifier: Apache-2.0
#include "acc/metrics/job_metrics.hpp"

#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace acc::launcher {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;
using Seconds = std::chrono::duration<double>;
using Type = Metric::Type;

// The samples of one kind of thing, one for each metric that it has.
class JobMetrics {
 public:
  void add(const JobView& job, const std::string& node) {
    const Labels labels = {{"job", job.id}, {"node", node}};
    put(start_, labels, Seconds(job.started.time_since_epoch()).count());
    // The client of --hosts leaves the rest to the machines where its ranks run.
    if (job.hosts > 0) return;
    put(processes_, labels, job.world_size);
    put(restarts_, labels, job.attempt);
    put(max_restarts_, labels, job.max_restarts);
  }

  std::vector<Metric> take() { return {start_, processes_, restarts_, max_restarts_}; }

 private:
  static void put(Metric& metric, const Labels& labels, double value) {
    metric.samples.push_back({.labels = labels, .value = value});
  }

  Metric start_ = {.name = "acc_job_start_time_seconds",
                   .unit = "seconds",
                   .help = "When the job was started, since the epoch of Unix."};
  Metric processes_ = {.name = "acc_job_processes", .help = "Its world size: the ranks on all nodes."};
  Metric restarts_ = {
      .name = "acc_job_restarts", .type = Type::counter, .help = "How often its workers were restarted."};
  Metric max_restarts_ = {.name = "acc_job_max_restarts", .help = "How often they may be."};
};

class RankMetrics {
 public:
  void add(const JobView& job, const RankView& rank, const RankUsage& usage, const std::string& node) {
    labels_ = {{"job", job.id}, {"rank", std::to_string(rank.rank)}, {"node", node}};
    const bool is_up = rank.ended.empty() && usage.processes > 0;
    put(up_, is_up ? 1 : 0);
    if (is_up) add_usage(usage);
    if (rank.progress) add_progress(*rank.progress);
  }

  std::vector<Metric> take() {
    return {up_,     cpu_,       memory_,     threads_, gpu_memory_,  gpu_use_,  step_,       samples_,
            tokens_, step_time_, since_step_, loss_,    collectives_, sections_, in_section_, slow_};
  }

 private:
  void put(Metric& metric, double value) const {
    metric.samples.push_back({.labels = labels_, .value = value});
  }
  void put(Metric& metric, std::int64_t value) const { put(metric, static_cast<double>(value)); }
  void put(Metric& metric, int value) const { put(metric, static_cast<double>(value)); }

  void put_in_section(Metric& metric, const std::string& section, Seconds time) const {
    MetricSample sample{.labels = labels_, .value = time.count()};
    sample.labels.emplace_back("section", section);
    metric.samples.push_back(std::move(sample));
  }

  void add_usage(const RankUsage& usage) {
    put(cpu_, Seconds(usage.cpu_time).count());
    put(memory_, static_cast<double>(usage.memory_bytes));
    put(threads_, usage.threads);
    if (usage.gpus.empty()) return;
    double bytes = 0;
    std::vector<double> use;
    for (const RankGpu& gpu : usage.gpus) {
      bytes += static_cast<double>(gpu.memory_bytes);
      if (gpu.use) use.push_back(*gpu.use / 100.0);
    }
    put(gpu_memory_, bytes);
    if (!use.empty())
      put(gpu_use_, std::accumulate(use.begin(), use.end(), 0.0) / static_cast<double>(use.size()));
  }

  void add_progress(const ProgressView& progress) {
    // Counted as the training does: it may go on at 20,000, which no counter does.
    if (progress.since_step) put(step_, progress.steps);
    put(samples_, progress.samples);
    put(tokens_, progress.tokens);
    if (progress.step_time) put(step_time_, progress.step_time->count());
    if (progress.since_step) put(since_step_, progress.since_step->count());
    if (progress.loss) put(loss_, *progress.loss);
    put(collectives_, progress.collectives);
    for (const auto& [section, time] : progress.spent) put_in_section(sections_, section, time);
    put_in_section(in_section_, progress.section, progress.in_section);
    put(slow_, progress.slow_in.empty() ? 0 : 1);
  }

  Labels labels_ = {};
  Metric up_ = {.name = "acc_rank_up", .help = "1 while its process runs, 0 when it has ended."};
  Metric cpu_ = {.name = "acc_rank_cpu_seconds",
                 .type = Type::counter,
                 .unit = "seconds",
                 .help = "CPU time of the rank and its child processes."};
  Metric memory_ = {
      .name = "acc_rank_memory_bytes", .unit = "bytes", .help = "Their memory, what they share in parts."};
  Metric threads_ = {.name = "acc_rank_threads", .help = "Their threads."};
  Metric gpu_memory_ = {
      .name = "acc_rank_gpu_memory_bytes", .unit = "bytes", .help = "Their memory on all GPUs."};
  Metric gpu_use_ = {.name = "acc_rank_gpu_use_ratio",
                     .unit = "ratio",
                     .help = "Use of the GPUs that they are on, by all processes there; the mean."};
  Metric step_ = {.name = "acc_rank_step",
                  .help = "The optimizer step that has ended last, as the training counts them."};
  Metric samples_ = {.name = "acc_rank_samples", .type = Type::counter, .help = "Samples it has read."};
  Metric tokens_ = {.name = "acc_rank_tokens", .type = Type::counter, .help = "Tokens it has read."};
  Metric step_time_ = {
      .name = "acc_rank_step_seconds", .unit = "seconds", .help = "How long its last step took."};
  Metric since_step_ = {
      .name = "acc_rank_since_step_seconds", .unit = "seconds", .help = "Since the end of its last step."};
  Metric loss_ = {.name = "acc_rank_loss", .help = "Of its last backward, before it is averaged."};
  Metric collectives_ = {
      .name = "acc_rank_collectives", .type = Type::counter, .help = "Collectives that have begun."};
  Metric sections_ = {.name = "acc_rank_section_seconds",
                      .type = Type::counter,
                      .unit = "seconds",
                      .help = "Time that it has spent in each section, the present one included."};
  Metric in_section_ = {.name = "acc_rank_current_section_seconds",
                        .unit = "seconds",
                        .help = "The section it is in, and for how long."};
  Metric slow_ = {.name = "acc_rank_slow", .help = "1 while the others wait for it in each step."};
};

}  // namespace

std::vector<Metric> job_metrics(const std::vector<JobUsage>& jobs, std::size_t silent,
                                const std::string& node) {
  JobMetrics of_jobs;
  RankMetrics of_ranks;
  std::set<std::string> ids;
  for (const JobUsage& job : jobs) {
    if (!ids.insert(job.job.id).second) continue;
    of_jobs.add(job.job, node);
    for (std::size_t i = 0; i < job.ranks.size(); ++i)
      of_ranks.add(job.job, job.job.ranks[i], job.ranks[i], node);
  }
  const auto count = [&](const char* name, const char* help, std::size_t number) {
    return Metric{.name = name,
                  .help = help,
                  .samples = {{.labels = {{"node", node}}, .value = static_cast<double>(number)}}};
  };
  std::vector<Metric> metrics = {
      count("acc_jobs", "Running jobs.", ids.size() + silent),
      count("acc_jobs_silent", "Running jobs that do not answer: they were stopped, or hang.", silent)};
  for (Metric& metric : of_jobs.take()) metrics.push_back(std::move(metric));
  for (Metric& metric : of_ranks.take()) metrics.push_back(std::move(metric));
  return metrics;
}

}  // namespace acc::launcher
