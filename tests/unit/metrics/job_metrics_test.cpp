// SPDX-License-Identifier: Apache-2.0
#include "acc/metrics/job_metrics.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "support/catch.hpp"

namespace job_metrics_test {

using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

JobUsage usage_of(const std::string& id) {
  JobUsage usage;
  usage.job = {.id = id,
               .run_id = "secret-run",
               .attempt = 2,
               .max_restarts = 3,
               .world_size = 2,
               .command = {"/home/alice/train.py", "--token", "secret"},
               .folder = "/home/alice"};
  usage.job.ranks = {{.rank = 4,
                      .pid = 14,
                      .progress = ProgressView{.steps = 812,
                                               .step_time = 0.25s,
                                               .since_step = 2s,
                                               .loss = 0.5,
                                               .section = "data",
                                               .in_section = 9s,
                                               .slow_in = "data",
                                               .spent = {{"data", 30s}}}},
                     {.rank = 5, .ended = "exit code 1"}};
  usage.ranks = {
      {.state = "running",
       .cpu_time = 1500ms,
       .memory_bytes = 1024,
       .processes = 1,
       .threads = 6,
       .gpus = {{.index = 0, .memory_bytes = 10, .use = 50}, {.index = 1, .memory_bytes = 20, .use = 100}}},
      {.state = "exit code 1"}};
  return usage;
}

// By metric and the values of its labels: `acc_rank_up train-1 4 host`.
std::map<std::string, double> values_of(const std::vector<Metric>& metrics) {
  std::map<std::string, double> values;
  for (const Metric& metric : metrics) {
    for (const MetricSample& sample : metric.samples) {
      std::string name = metric.name;
      for (const auto& label : sample.labels) name += " " + label.second;
      CHECK(values.emplace(name, sample.value).second);
    }
  }
  return values;
}

}  // namespace

TEST_CASE("job_metrics: what is known of a job and its ranks", "[metrics]") {
  const auto values = values_of(job_metrics({usage_of("train-1")}, 1, "host"));
  const std::map<std::string, double> expected = {
      {"acc_jobs host", 2},
      {"acc_jobs_silent host", 1},
      {"acc_job_start_time_seconds train-1 host", 0},
      {"acc_job_processes train-1 host", 2},
      {"acc_job_restarts train-1 host", 2},
      {"acc_job_max_restarts train-1 host", 3},
      {"acc_rank_up train-1 4 host", 1},
      {"acc_rank_cpu_seconds train-1 4 host", 1.5},
      {"acc_rank_memory_bytes train-1 4 host", 1024},
      {"acc_rank_threads train-1 4 host", 6},
      {"acc_rank_gpu_memory_bytes train-1 4 host", 30},
      {"acc_rank_gpu_use_ratio train-1 4 host", 0.75},
      {"acc_rank_step train-1 4 host", 812},
      {"acc_rank_samples train-1 4 host", 0},
      {"acc_rank_tokens train-1 4 host", 0},
      {"acc_rank_step_seconds train-1 4 host", 0.25},
      {"acc_rank_since_step_seconds train-1 4 host", 2},
      {"acc_rank_loss train-1 4 host", 0.5},
      {"acc_rank_collectives train-1 4 host", 0},
      {"acc_rank_section_seconds train-1 4 host data", 30},
      {"acc_rank_current_section_seconds train-1 4 host data", 9},
      {"acc_rank_slow train-1 4 host", 1},
      // Of a rank that has ended nothing else is known.
      {"acc_rank_up train-1 5 host", 0},
  };
  CHECK(values == expected);
}

TEST_CASE("job_metrics: a step may be any number, and is there once one has ended", "[metrics]") {
  JobUsage usage = usage_of("train-1");
  const auto metrics = job_metrics({usage}, 0, "host");
  const auto step = std::ranges::find(metrics, "acc_rank_step", &Metric::name);
  REQUIRE(step != metrics.end());
  CHECK(step->type == Metric::Type::gauge);
  // A training that goes on at 812 has not ended a step of its own.
  usage.job.ranks[0].progress->since_step.reset();
  const auto values = values_of(job_metrics({usage}, 0, "host"));
  CHECK_FALSE(values.contains("acc_rank_step train-1 4 host"));
  CHECK(values.contains("acc_rank_samples train-1 4 host"));
}

TEST_CASE("job_metrics: no command, path or user is shown", "[metrics]") {
  std::set<std::string> labels;
  for (const Metric& metric : job_metrics({usage_of("train-1")}, 0, "host")) {
    for (const MetricSample& sample : metric.samples) {
      for (const auto& label : sample.labels) labels.insert(label.first);
    }
  }
  CHECK(labels == std::set<std::string>{"job", "rank", "node", "section"});
  const std::string text =
      metrics_text(job_metrics({usage_of("train-1")}, 0, "host"), MetricsFormat::open_metrics);
  CHECK(text.find("secret") == std::string::npos);
  CHECK(text.find("alice") == std::string::npos);
}

TEST_CASE("job_metrics: a sample occurs once, though two containers have a job of one id", "[metrics]") {
  const auto values =
      values_of(job_metrics({usage_of("train-1"), usage_of("train-1"), usage_of("train-2")}, 0, "host"));
  CHECK(values.at("acc_jobs host") == 2);
  CHECK(values.contains("acc_rank_up train-2 4 host"));
}

TEST_CASE("job_metrics: a name ends with its unit", "[metrics]") {
  for (const Metric& metric : job_metrics({}, 0, "host")) {
    INFO(metric.name);
    CHECK(metric.name.ends_with(metric.unit.empty() ? "" : "_" + metric.unit));
    CHECK_FALSE(metric.help.empty());
  }
}

}  // namespace job_metrics_test
