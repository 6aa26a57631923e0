// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/notebook_launcher.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/notebook/agent.hpp"
#include "acc/notebook/fork_rule.hpp"
#include "acc/notebook/interrupts.hpp"
#include "acc/notebook/notebook_plan.hpp"
#include "acc/notebook/python_gil.hpp"
#include "acc/notebook/worker.hpp"
#include "acc/runtime/process/partial_state.hpp"

namespace acc::detail {
namespace {

using launcher::LaunchPlan;

[[noreturn]] void throw_launch_error(const std::string& what) {
  throw Error({.kind = ErrorKind::system, .what = what, .where = "notebook_launcher"});
}

// Empty where there are too many open files.
Descriptor pidfd_of(pid_t pid) {
  return above_standard_streams(Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))));
}

// With all signals blocked, so that none of the caller's handlers runs in the child.
pid_t fork_agent(const NotebookJob& job) {
  // What stands in the buffers would be written by each worker too.
  flush_standard_streams();
  const BlockedSignals blocked;
  const pid_t agent = ::fork();
  if (agent < 0) throw_launch_error(std::string("this process cannot be forked: ") + std::strerror(errno));
  if (agent == 0) run_agent(job);
  return agent;
}

// Waits until the agent has ended; interrupts reach it. Returns whether there was one.
bool wait_for(pid_t agent, const Interrupts& interrupts) {
  const WithoutGil others_may_run;
  const Descriptor ended = pidfd_of(agent);
  if (!ended) ::kill(agent, SIGKILL);  // its workers end with it
  bool interrupted = false;
  std::array<pollfd, 2> events = {{{ended.get(), POLLIN, 0}, {interrupts.descriptor(), POLLIN, 0}}};
  while (ended && events[0].revents == 0) {
    if (::poll(events.data(), events.size(), -1) <= 0) continue;
    if (events[1].revents == 0) continue;
    interrupts.acknowledge();
    interrupted = true;
    ::kill(agent, SIGINT);
  }
  ::waitpid(agent, nullptr, 0);
  return interrupted;
}

std::vector<std::string> collect(const NotebookJob& job) {
  std::vector<std::string> results;
  for (const SharedText& text : job.results) {
    auto result = result_in(text);
    if (!result) {
      throw Error({.kind = ErrorKind::system,
                   .what = "ended before its function returned, with exit code 0",
                   .where = "local rank " + std::to_string(results.size())});
    }
    results.push_back(*std::move(result));
  }
  return results;
}

std::vector<std::string> run(const WorkerFunction& function, const LaunchPlan& plan) {
  static std::mutex one_at_a_time;
  const std::unique_lock lock(one_at_a_time, std::try_to_lock);
  if (!lock)
    throw Error({.what = "another thread of this process is in it already", .where = "notebook_launcher"});
  const pid_t caller = ::getpid();
  const Descriptor caller_ended = pidfd_of(caller);
  if (!caller_ended)
    throw_launch_error(std::string("workers cannot watch this process: ") + std::strerror(errno));
  const NotebookJob job = {.plan = plan,
                           .function = function,
                           .results = std::vector<SharedText>(static_cast<std::size_t>(plan.nproc_per_node)),
                           .caller = caller,
                           .caller_ended = caller_ended.get()};
  Interrupts interrupts;
  if (wait_for(fork_agent(job), interrupts)) {
    interrupts.pass_on();
    throw_launch_error("was interrupted; all workers have ended");
  }
  throw_failure(job.outcome);
  return collect(job);
}

// accelerate's dry start: workers that join the job and do nothing else.
void start_dry(const LaunchPlan& plan, const Environment& environment) {
  if (!parse_truth(environment.get("ACCELERATE_DEBUG_MODE")).value_or(false)) return;
  const auto join = [] {
    PartialState().wait_for_everyone();
    return std::string();
  };
  try {
    run(join, plan);
  } catch (const Error& error) {
    throw Error({.kind = error.kind(),
                 .what = std::string("workers that only join the job fail: ") + error.what(),
                 .where = "notebook_launcher with ACCELERATE_DEBUG_MODE"});
  }
}

}  // namespace

std::vector<std::string> launch_workers(const WorkerFunction& function,
                                        const NotebookLauncherOptions& options) {
  const NotebookHost host = this_host();
  const LaunchPlan plan = plan_notebook_job(options, host);
  require_fork_can_train(host.environment);
  start_dry(plan, host.environment);
  std::fputs((announcement(plan) + "\n").c_str(), stdout);
  return run(function, plan);
}

std::vector<std::string> launch_debug_workers(const WorkerFunction& function, int num_processes) {
  NotebookHost host = this_host();
  host.environment.set("GLOO_SOCKET_IFNAME", "lo");
  const LaunchPlan plan = plan_notebook_job({.num_processes = num_processes, .cpu = true}, host);
  require_fork_can_train(host.environment);
  return run(function, plan);
}

}  // namespace acc::detail
