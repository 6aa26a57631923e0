// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>

#include "acc/base/log.hpp"
#include "acc/control/job_table.hpp"
#include "commands.hpp"
#include "running_jobs.hpp"

namespace acc::launcher {
namespace {

struct PsOptions {
  std::string job = {};
  bool json = false;
  bool stacks = false;
};

int table_width() {
  winsize size = {};
  const bool terminal = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return terminal ? size.ws_col : std::numeric_limits<int>::max();
}

int show_stacks(const std::string& name) {
  RunningJob job = running_job(name, JobPart::ranks);
  job.client.send({{"request", "stacks"}});
  job.client.read_to_end([](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
  return 0;
}

int show_jobs(const PsOptions& options) {
  if (options.stacks) return show_stacks(options.job);
  std::vector<RunningJob> jobs;
  bool none = false;
  if (options.job.empty()) {
    FoundJobs found = running_jobs();
    none = found.running.empty() && found.silent.empty();
    jobs = std::move(found.running);
  } else {
    jobs.push_back(running_job(options.job));
  }
  const std::vector<JobUsage> usage = jobs.empty() ? std::vector<JobUsage>() : measure(jobs);
  if (options.json) {
    fmt::print("{}\n", job_list(usage).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (none) {
    log::write(log::Level::info, "no job of yours is running on this machine");
  } else {
    fmt::print("{}", job_table(usage, std::chrono::system_clock::now(), table_width()));
  }
  return 0;
}

}  // namespace

void add_ps_command(CLI::App& app, int& code) {
  CLI::App* ps =
      app.add_subcommand("ps", "Show the running jobs, with the state and resource use of each rank");
  const auto options = std::make_shared<PsOptions>();
  add_job_option(*ps, options->job, "all jobs");
  CLI::Option* stacks = ps->add_flag("--stacks", options->stacks, "Show the states and stacks of the ranks");
  ps->add_flag("--json", options->json, "For programs")->excludes(stacks);
  ps->callback([options, &code] { code = show_jobs(*options); });
}

}  // namespace acc::launcher
