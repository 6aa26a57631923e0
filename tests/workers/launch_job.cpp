// SPDX-License-Identifier: Apache-2.0
// acc::launcher::launch() with a plan from the command line: acc-test-launch-job [key=value...] PROGRAM
// [ARG...]
#include <csignal>
#include <cstdio>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/launch/launch.hpp"

namespace {

acc::launcher::Streams streams(const std::string& value) {
  return static_cast<acc::launcher::Streams>(std::stoi(value));
}

bool set(acc::launcher::LaunchPlan& plan, const std::string& key, const std::string& value) {
  if (key == "workers") {
    plan.nproc_per_node = std::stoi(value);
  } else if (key == "restarts") {
    plan.max_restarts = std::stoi(value);
  } else if (key == "grace_ms") {
    plan.shutdown_timeout = std::chrono::milliseconds(std::stoi(value));
  } else if (key == "stop_signal") {
    plan.stop_signals.insert(std::stoi(value));
  } else if (key == "engine") {
    plan.repeated_sigterm = std::chrono::hours(24);
    plan.notice_signals = {SIGUSR1, SIGUSR2};
  } else if (key == "requeue") {
    plan.requeue_on_preemption = true;
  } else if (key == "hang_ms") {
    plan.hang.timeout = std::chrono::milliseconds(std::stoi(value));
    plan.output.observed = true;
  } else if (key == "on_hang") {
    plan.hang.action = value == "kill" ? acc::launcher::OnHang::kill : acc::launcher::OnHang::restart;
  } else if (key == "attach") {
    plan.attach = std::stoi(value);
    plan.output.redirects = {.default_streams = acc::launcher::Streams::both,
                             .of_rank = {{*plan.attach, acc::launcher::Streams::none}}};
  } else if (key == "path") {
    plan.inherited.set("PATH", value);
  } else if (key == "namespace") {
    plan.pid_namespace = true;
  } else if (key == "plain") {
    plan.sets_ranks = false;
  } else if (key == "watch") {
    plan.watch = true;
  } else if (key == "redirects") {
    plan.output.redirects.default_streams = streams(value);
  } else if (key == "tee") {
    plan.output.tee.default_streams = streams(value);
  } else if (key == "log_dir") {
    plan.output.log_dir = value;
  } else if (key == "cpus") {
    for (const std::string& cpu : acc::split(value, ','))
      plan.cpus_of_rank.push_back({.cpus = {std::stoi(cpu)}, .numa_nodes = {0}});
  } else if (key == "port") {
    plan.master_port = static_cast<std::uint16_t>(std::stoi(value));
  } else if (key == "filter") {
    for (const std::string& rank : acc::split(value, ','))
      plan.output.local_ranks_filter.push_back(std::stoi(rank));
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  acc::launcher::LaunchPlan plan;
  plan.inherited = acc::Environment::of_process();
  int next = 1;
  for (; next < argc; ++next) {
    const std::string word = argv[next];
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || !set(plan, word.substr(0, equals), word.substr(equals + 1))) break;
  }
  plan.worker_command.assign(argv + next, argv + argc);
  plan.program = plan.worker_command.at(0);
  return acc::launcher::launch(std::move(plan));
} catch (const acc::Error& error) {
  std::fprintf(stderr, "acc: %s\n", error.what());
  return acc::exit_code(error.kind());
}
