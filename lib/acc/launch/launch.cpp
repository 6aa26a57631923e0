// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/launch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <memory>

#include "acc/base/error.hpp"
#include "acc/launch/agent.hpp"
#include "acc/launch/guard.hpp"
#include "acc/launch/local_processes.hpp"
#include "acc/launch/text_reporter.hpp"
#include "acc/rendezvous/cluster_node.hpp"
#include "acc/rendezvous/single_node.hpp"

namespace acc {
namespace {

// Whoever starts us with a closed stream must not find a worker's pipe under its number.
void open_standard_streams() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR)) {
    if (fd <= STDERR_FILENO) continue;
    ::close(fd);
    return;
  }
}

std::string host_name() {
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// Logs that a person asked for stay when there is something to look into.
bool keeps_logs(const LaunchPlan& plan, const LaunchReport& report) {
  const auto wanted = [](const StreamMap& map) { return !(map == StreamMap{}); };
  return report.first_failure && (wanted(plan.output.redirects) || wanted(plan.output.tee));
}

std::unique_ptr<Rendezvous> make_rendezvous(boost::asio::io_context& loop, const LaunchPlan& plan) {
  if (plan.rendezvous.most_nodes > 1) return std::make_unique<ClusterNode>(loop, plan);
  return std::make_unique<SingleNode>(loop, plan);
}

int run_job(const LaunchPlan& plan, const LogFolder& logs, int front) {
  boost::asio::io_context loop(1);
  Output output(loop, plan.output, plan.nproc_per_node, {});
  TextReporter reporter([&](std::string_view lines) { output.announce(lines); });
  output.on_warning([&](const std::string& text) { reporter.report(Warning{text}); });
  const auto fail = [&](const std::exception& error, ErrorKind kind) {
    output.announce(std::string("acc: ") + error.what() + "\n");
    output.finish();
    logs.remove_temporary();
    return exit_code(kind);
  };
  try {
    LocalProcesses processes(loop, output, front);
    const std::unique_ptr<Rendezvous> rendezvous = make_rendezvous(loop, plan);
    const LaunchReport report = run(plan, {.processes = processes,
                                           .rendezvous = *rendezvous,
                                           .reporter = reporter,
                                           .logs = logs,
                                           .host = host_name()});
    if (!keeps_logs(plan, report)) logs.remove_temporary();
    return report.exit_code;
  } catch (const Error& error) {
    return fail(error, error.kind());
  } catch (const std::exception& error) {
    return fail(error, ErrorKind::system);
  }
}

// The agent itself was killed: nobody else is left to say so.
int report_lost_agent(const ExitStatus& agent) {
  boost::asio::io_context loop(1);
  Output output(loop, {}, 1, {});
  output.announce("acc: its agent was ended by " + to_string(agent) + "; all workers were killed\n");
  output.finish();
  return shell_code(agent);
}

}  // namespace

int launch(const LaunchPlan& plan) {
  open_standard_streams();
  const LogFolder logs = LogFolder::make(plan);
  const GuardReport report = guard([&](int front) { return run_job(plan, logs, front); });
  if (std::holds_alternative<Exited>(report.agent)) return shell_code(report.agent);
  logs.remove_temporary();
  return report_lost_agent(report.agent);
}

}  // namespace acc
