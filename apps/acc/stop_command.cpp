// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/stat_line.hpp"
#include "commands.hpp"
#include "running_jobs.hpp"

namespace acc::launcher {
namespace {

constexpr int kSupervisorEndsMs = 5000;

bool is_stopped(int pid) {
  const std::string text = first_line_of("/proc/" + std::to_string(pid) + "/stat");
  const auto line = parse_stat_line(text);
  return line && line->field(3) == "T";
}

[[noreturn]] void fail_unended(const JobView& job) {
  const std::string pid = std::to_string(job.pid);
  throw Error({.kind = ErrorKind::system,
               .what = "its workers have ended, but its process " + pid + " stays stopped",
               .where = job.id,
               .hint = "ps " + pid + " shows its state"});
}

int stop_job(const std::string& name, bool now) {
  RunningJob job = running_job(name);
  const Descriptor supervisor(static_cast<int>(::syscall(SYS_pidfd_open, job.view.pid, 0)));
  job.client.send({{"request", "stop"}, {"now", now}});
  std::optional<nlohmann::json> answer = job.client.read_message();
  while (answer && !answer->contains("ended")) answer = job.client.read_message();
  // The agent has ended. The job has ended when the process that the user started has, which Ctrl-Z may have
  // stopped.
  pollfd ended = {.fd = supervisor.get(), .events = POLLIN, .revents = 0};
  if (supervisor) {
    ::syscall(SYS_pidfd_send_signal, supervisor.get(), SIGCONT, nullptr, 0);
    // That of a program with notebook_launcher goes on.
    if (::poll(&ended, 1, kSupervisorEndsMs) == 0 && is_stopped(job.view.pid)) fail_unended(job.view);
  }
  const auto code = answer ? std::optional(answer->at("ended").get<int>()) : std::nullopt;
  fmt::print("{}\n", stop_text(job.view, code));
  return 0;
}

}  // namespace

void add_stop_command(CLI::App& app, int& code) {
  CLI::App* stop =
      app.add_subcommand("stop", "Stop a running job, as SIGTERM does, and wait until it has ended");
  const auto job = std::make_shared<std::string>();
  const auto now = std::make_shared<bool>(false);
  add_job_option(*stop, *job, "the only job");
  stop->add_flag("--now", *now, "Kill the workers at once");
  stop->callback([job, now, &code] { code = stop_job(*job, *now); });
}

}  // namespace acc::launcher
