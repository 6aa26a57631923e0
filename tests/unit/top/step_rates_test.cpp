// SPDX-License-Identifier: Apache-2.0
#include "acc/top/step_rates.hpp"

#include "support/catch.hpp"

namespace step_rates_test {

using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

const RateWindow::TimePoint kStart{1h};

std::vector<JobUsage> job_at(std::int64_t steps, double data, double communication, pid_t pid = 7) {
  ProgressView progress{
      .steps = steps, .step_time = ProgressView::Seconds(0.5), .since_step = ProgressView::Seconds(0.125)};
  progress.spent = {{"data", ProgressView::Seconds(data)},
                    {"communication", ProgressView::Seconds(communication)}};
  JobUsage usage;
  usage.job.id = "train-1";
  usage.job.ranks = {{.rank = 3, .pid = pid, .progress = progress}, {.rank = 4, .pid = 8}};
  usage.ranks.resize(2);
  return {usage};
}

}  // namespace

TEST_CASE("step_rates: rates and shares are those of the last seconds", "[top]") {
  RateWindow window(5s);
  window.observe(job_at(100, 50, 10), kStart);
  window.observe(job_at(110, 51, 12), kStart + 4s);
  CHECK(window.rates_of("train-1", 3) ==
        StepRates{.steps_per_second = 2.5, .data_share = 0.25, .communication_share = 0.5});
  // The first reading is out of the window now.
  window.observe(job_at(111, 51, 12), kStart + 10s);
  CHECK(window.rates_of("train-1", 3) ==
        StepRates{.steps_per_second = 1.0 / 6, .data_share = 0.0, .communication_share = 0.0});
}

TEST_CASE("step_rates: of long steps the rate is that from the end of one to the end of the next", "[top]") {
  RateWindow window(5s);
  const auto job = [](std::int64_t steps, double since) {
    std::vector<JobUsage> jobs = job_at(steps, 50, 10);
    jobs[0].job.ranks[0].progress->step_time = ProgressView::Seconds(20);
    jobs[0].job.ranks[0].progress->since_step = ProgressView::Seconds(since);
    return jobs;
  };
  window.observe(job(100, 17), kStart);
  window.observe(job(101, 1), kStart + 4s);
  CHECK(window.rates_of("train-1", 3).steps_per_second == 0.05);
}

TEST_CASE("step_rates: of one reading, or without a step meanwhile, the last step tells", "[top]") {
  RateWindow window;
  window.observe(job_at(100, 50, 10), kStart);
  CHECK(window.rates_of("train-1", 3) == StepRates{.steps_per_second = 2.0});
  window.observe(job_at(100, 50, 10), kStart + 1s);
  CHECK(window.rates_of("train-1", 3).steps_per_second == 2.0);
}

TEST_CASE("step_rates: a rank that has been in a step for three times as long stands still", "[top]") {
  RateWindow window;
  std::vector<JobUsage> jobs = job_at(100, 50, 10);
  jobs[0].job.ranks[0].progress->since_step = ProgressView::Seconds(1.6);
  window.observe(jobs, kStart);
  CHECK(window.rates_of("train-1", 3).steps_per_second == 0.0);
}

TEST_CASE("step_rates: who does not say how far it is, or is not there, has none", "[top]") {
  RateWindow window;
  window.observe(job_at(100, 50, 10), kStart);
  CHECK(window.rates_of("train-1", 4) == StepRates{});
  CHECK(window.rates_of("train-2", 3) == StepRates{});
  window.observe({}, kStart + 1s);
  CHECK(window.rates_of("train-1", 3) == StepRates{});
}

TEST_CASE("step_rates: a rank that was restarted, or begins another training, begins anew", "[top]") {
  RateWindow window;
  window.observe(job_at(100, 50, 10), kStart);
  SECTION("another process") {
    window.observe(job_at(400, 60, 10, 9), kStart + 1s);
  }
  SECTION("fewer steps") {
    window.observe(job_at(3, 60, 10), kStart + 1s);
  }
  CHECK(window.rates_of("train-1", 3) == StepRates{.steps_per_second = 2.0});
}

TEST_CASE("step_rates: ranks of another node count from one of its reports to the next", "[top]") {
  RateWindow window;
  const auto observe = [&](std::int64_t steps, std::chrono::milliseconds age, RateWindow::TimePoint now) {
    JobUsage usage;
    usage.job.id = "a";
    const ProgressView progress{.steps = steps, .since_step = ProgressView::Seconds(0.5)};
    usage.other_nodes = {.nodes = {{.age = age, .ranks = {{.rank = 3, .progress = progress}}, .usage = {{}}}},
                         .time = now};
    window.observe({usage}, now);
    return window.rates_of("a", 3).steps_per_second;
  };
  const RateWindow::TimePoint begin{100s};
  CHECK_FALSE(observe(10, 0ms, begin));
  CHECK(observe(20, 1s, begin + 2s) == 10);  // as it was a second after the first
  CHECK(observe(20, 3s, begin + 4s) == 10);  // the same report
}

}  // namespace step_rates_test
