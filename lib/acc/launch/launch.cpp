// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/log.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/subprocess/child_task.hpp"
#include "acc/control/control_server.hpp"
#include "acc/control/job_file.hpp"
#include "acc/control/runtime_folder.hpp"
#include "acc/control/stacks.hpp"
#include "acc/launch/agent.hpp"
#include "acc/launch/descendants.hpp"
#include "acc/launch/event_log.hpp"
#include "acc/launch/file_timer.hpp"
#include "acc/launch/guard.hpp"
#include "acc/launch/hang_watch.hpp"
#include "acc/launch/job_record.hpp"
#include "acc/launch/json_reporter.hpp"
#include "acc/launch/local_processes.hpp"
#include "acc/launch/own_error_file.hpp"
#include "acc/launch/pid_namespace.hpp"
#include "acc/launch/reporter.hpp"
#include "acc/launch/terminal_loan.hpp"
#include "acc/launch/text_reporter.hpp"
#include "acc/plan/explain.hpp"
#include "acc/rendezvous/cluster_node.hpp"
#include "acc/rendezvous/single_node.hpp"

namespace acc::launcher {
namespace {

// Whoever starts us with a closed stream must not find a worker's pipe under its number.
void open_standard_streams() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR)) {
    if (fd <= STDERR_FILENO) continue;
    ::close(fd);
    return;
  }
}

// c10d meets where it is told to for one node, too: another may come in its place, or be there already.
bool meets_others(const RendezvousPlan& wanted) {
  if (wanted.most_nodes > 1 || wanted.store_file) return true;
  if (wanted.backend != RendezvousBackend::c10d || wanted.endpoint_host.empty()) return false;
  return !wanted.is_host.value_or(names_this_machine(wanted.endpoint_host, {}, own_names()));
}

std::unique_ptr<Rendezvous> make_rendezvous(boost::asio::io_context& loop, const LaunchPlan& plan) {
  if (meets_others(plan.rendezvous)) return std::make_unique<ClusterNode>(loop, plan);
  return std::make_unique<SingleNode>(loop, plan);
}

// A debugger takes seconds, and the job must not wait for it.
void show_stacks(const LaunchPlan& plan, const JobView& job, Descriptor to) {
  run_in_child(std::move(to), [&](int connection) {
    write_stacks(job, {.environment = plan.inherited}, [&](std::string_view text) {
      if (!write_all(connection, text)) ::_exit(1);
    });
  });
}

// Who debugs one rank wants to know where the others are.
std::string attached_text(const LaunchPlan& plan, const LogFolder& logs) {
  if (!plan.attach || plan.nproc_per_node == 1 || logs.run_folder().empty()) return {};
  return "rank " + std::to_string(*plan.attach) + " has the terminal, the others write to " +
         logs.run_folder().string();
}

std::filesystem::path own_error_file(const LaunchPlan& plan) {
  return plan.inherited.get("TORCHELASTIC_ERROR_FILE");
}

// An error file that cannot be written must not take the place of the job's own exit code.
void or_warn(Reporter& reporter, const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    reporter.report(Warning{error.what()});
  }
}

// A process that a timer's file names might be anybody's: only our own are ended.
void end_late(const TimerTable::Expired& expired, Reporter& reporter) {
  for (const Descendant& process : descendants_of(::getpid())) {
    if (process.pid != expired.pid) continue;
    reporter.report(Warning{fmt::format("process {} was not through with '{}' in time and gets {}",
                                        expired.pid, expired.scope, signal_name(expired.signal))});
    signal_descendant(process, expired.signal);
  }
}

// Whoever wants to know what happens: the person, and programs.
void add_readers(const LaunchPlan& plan, Output& output, Reporters& readers) {
  const std::string host = host_name();
  readers.add(std::make_unique<TextReporter>(log::write_rendered, host, interpreter_text(plan)));
  if (plan.events_on_console) {
    readers.add(std::make_unique<JsonReporter>(plan.run_id, host,
                                               [&](std::string_view line) { output.announce(line); }));
  }
  if (plan.event_log.empty()) return;
  const auto file = std::make_shared<EventLog>(plan.event_log, [](const std::string& reason) {
    log::write(log::Level::warn, "the event log cannot be written: " + reason + "; acc goes on trying");
  });
  readers.add(std::make_unique<JsonReporter>(plan.run_id, host,
                                             [file](std::string_view line) { file->write(line); }));
}

struct Front {
  pid_t pid = 0;
  /// Becomes readable when it is gone.
  int gone = -1;
};

/// What the job leaves behind unless somebody removes it.
struct Leftovers {
  JobFile file;
  LogFolder logs = {};

  /// The failed job's logs may stay.
  void remove(bool logs_too = true) const {
    if (logs_too) logs.remove_temporary();
    file.remove();
  }
};

int run_job(const LaunchPlan& plan, const Leftovers& left, const Front& front, const TerminalLoan* terminal) {
  boost::asio::io_context loop(1);
  Output output(loop, plan.output, plan.nproc_per_node, {});
  const log::ConsoleRedirect console([&](std::string_view lines) { output.announce(lines); });
  Reporters reporter;
  output.on_warning([&](const std::string& text) { reporter.report(Warning{text}); });
  const auto fail = [&](const std::exception& error, ErrorKind kind) {
    reporter.report(Failed{error.what(), exit_code(kind)});
    const auto file = own_error_file(plan);
    if (!file.empty())
      or_warn(reporter,
              [&] { replace_file(file, to_error_json(error.what(), "", std::chrono::system_clock::now())); });
    output.finish();
    left.remove();
    return exit_code(kind);
  };
  try {
    add_readers(plan, output, reporter);
    std::optional<OutsideNumbers> outside;
    if (plan.pid_namespace) outside.emplace();
    JobRecord record(view_of(plan, front.pid, outside ? outside->own() : ::getpid()),
                     [&](int rank) { return output.places(rank); });
    LocalProcesses processes(loop, output,
                             {.front = front.gone,
                              .also = plan.stop_signals,
                              .terminal = terminal,
                              .outside = outside ? &*outside : nullptr});
    if (const std::string text = attached_text(plan, left.logs); !text.empty())
      log::write(log::Level::info, text);
    std::optional<FileTimer> timer;
    if (!plan.timer_file.empty()) {
      timer.emplace(loop, plan.timer_file,
                    [&](const TimerTable::Expired& expired) { end_late(expired, reporter); });
    }
    ControlServer control(
        loop, runtime_folders(plan.inherited, ::geteuid()), record.view().id,
        {.view = [&] { return record.view(); },
         .stop =
             [&](bool now) {
               processes.post(SignalArrived{SIGTERM, now});
             },
         .output = [&](int rank) { return output.ring(rank); },
         .write_stacks = [&](Descriptor to) { show_stacks(plan, record.view(), std::move(to)); }});
    output.on_growth([&] { control.output_grew(); });
    record.on_started([&](const RankView& rank) { control.worker_started(rank); });
    HangWatch hang(loop, plan.hang,
                   {.job = [&]() -> const JobView& { return record.view(); },
                    .written = [&](int rank) { return output.written(rank); },
                    .tell = [&](Happening found) { processes.post(std::move(found)); },
                    .environment = plan.inherited});
    // What ends this block is reported when these two are gone.
    Reporters readers;
    readers.add(reporter);
    readers.add(record);
    readers.add(hang);
    const std::unique_ptr<Rendezvous> rendezvous = make_rendezvous(loop, plan);
    const LaunchReport report = run(plan, {.processes = processes,
                                           .rendezvous = *rendezvous,
                                           .reporter = readers,
                                           .logs = left.logs,
                                           .host = host_name()});
    control.end(report.exit_code);
    if (report.first_failure)
      or_warn(reporter, [&] { leave_error_file(own_error_file(plan), *report.first_failure); });
    left.remove(!report.first_failure || !left.logs.stays_after_failure());
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
  const log::ConsoleRedirect console([&](std::string_view lines) { output.announce(lines); });
  log::write(log::Level::error, "its agent was ended by " + to_string(agent) + "; all workers were killed");
  output.finish();
  return shell_code(agent);
}

}  // namespace

int launch(const LaunchPlan& given) {
  open_standard_streams();
  LaunchPlan plan = given;
  const pid_t front = plan.process = ::getpid();
  std::optional<TerminalLoan> terminal;
  if (plan.attach) terminal.emplace(STDIN_FILENO);
  const auto folders = runtime_folders(plan.inherited, ::geteuid());
  remove_leftovers(folders);
  Leftovers left = {.file = JobFile(folders, job_id(plan.worker_command, front))};
  left.logs = LogFolder::make(plan, [&](const std::filesystem::path& folder) { left.file.add(folder); });
  const TerminalLoan* lent = terminal ? &*terminal : nullptr;
  const GuardReport report = guard(
      [&](int gone) {
        return run_job(plan, left, {front, gone}, lent);
      },
      [&] { left.remove(); },
      {.in_session = plan.attach.has_value(),
       .pid_namespace = plan.pid_namespace,
       .also = plan.stop_signals});
  // An agent that was killed could not.
  if (terminal) terminal->take_back(0);
  if (std::holds_alternative<Exited>(report.agent)) return shell_code(report.agent);
  return report_lost_agent(report.agent);
}

}  // namespace acc::launcher
