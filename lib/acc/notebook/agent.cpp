// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/agent.hpp"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <set>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/text.hpp"
#include "acc/launch/console.hpp"
#include "acc/launch/error_text.hpp"
#include "acc/launch/guard.hpp"
#include "acc/launch/launch.hpp"
#include "acc/launch/text_reporter.hpp"
#include "acc/notebook/job_outcome.hpp"
#include "acc/notebook/worker.hpp"

namespace acc::detail {
namespace {

using launcher::LaunchReport;
using launcher::WorkerFailure;

std::set<unsigned> open_descriptors() {
  std::set<unsigned> descriptors;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return descriptors;
  const int folder_fd = ::dirfd(folder);
  while (const dirent* entry = ::readdir(folder)) {
    const auto number = parse_python_integer(entry->d_name);
    if (number && *number != folder_fd) descriptors.insert(static_cast<unsigned>(*number));
  }
  ::closedir(folder);
  return descriptors;
}

// Closes what the agent has opened: workers have the descriptors of the caller alone.
void close_all_but(const std::set<unsigned>& kept) {
  unsigned first = STDERR_FILENO + 1;
  for (const unsigned descriptor : kept) {
    if (descriptor > first) ::syscall(SYS_close_range, first, descriptor - 1, 0U);
    if (descriptor >= first) first = descriptor + 1;
  }
  ::syscall(SYS_close_range, first, ~0U, 0U);
}

Error to_error(const WorkerFailure& failure) {
  std::string where = "rank " + std::to_string(failure.rank);
  if (failure.host != host_name()) where += " on host " + failure.host;
  Error::Fields fields = {.kind = ErrorKind::system, .where = where};
  const auto& file = failure.error_file;
  fields.what =
      file && !file->message.empty() ? launcher::readable_error(file->message) : launcher::ending_of(failure);
  if (file && file->stays) fields.hint = "its files are in " + file->path.parent_path().string();
  return Error(fields);
}

// Throws where not all workers have ended well.
void require_success(const LaunchReport& report) {
  if (report.first_failure) throw to_error(*report.first_failure);
  Error::Fields fields = {.kind = ErrorKind::system, .where = "notebook_launcher"};
  if (report.stop_signal) {
    fields.what = "the workers were stopped by " + launcher::signal_name(*report.stop_signal);
  } else if (report.hung) {
    fields.what = "the workers hung and were stopped";
  } else if (report.group_code.value_or(0) != 0) {
    fields.what = "the job failed on another node, with exit code " + std::to_string(*report.group_code);
  } else {
    return;
  }
  throw Error(fields);
}

LaunchReport run_launcher(const NotebookJob& job) {
  launcher::open_standard_streams();  // before a log file gets one of their numbers
  log::open(job.plan.logging);
  for (const std::string& note : job.plan.notes) log::write(log::Level::info, note);
  const std::set<unsigned> of_caller = open_descriptors();
  return launcher::run_for_program(
      job.plan, {.pid = job.caller,
                 .exit_event = job.caller_ended,
                 .start = [&](const ProcessLauncher& launcher, boost::asio::io_context& loop,
                              const launcher::WorkerStart& worker) {
                   const SharedText& result = job.results.at(static_cast<std::size_t>(worker.local_rank));
                   result.write("");  // what it returned before a restart
                   return launcher.fork(loop.get_executor(), [&] {
                     close_all_but(of_caller);
                     return run_worker(job.function, result);
                   });
                 }});
}

std::string outcome_of(const NotebookJob& job) {
  try {
    require_success(run_launcher(job));
    return text_of_outcome(std::nullopt);
  } catch (const Error& error) {
    return text_of_outcome(error);
  } catch (const std::exception& error) {
    return text_of_outcome(
        Error({.kind = ErrorKind::system, .what = error.what(), .where = "notebook_launcher"}));
  }
}

}  // namespace

void run_agent(const NotebookJob& job) {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  // Ctrl-C and Jupyter's interrupt reach the caller alone, which passes them on.
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t waiting = signal_set_of(launcher::forwarded_signals());
  ::sigaddset(&waiting, SIGCHLD);
  ::pthread_sigmask(SIG_SETMASK, &waiting, nullptr);
  try {
    job.outcome.write(outcome_of(job));
  } catch (const std::exception&) {
    ::_exit(1);
  }
  // Neither exit handlers nor destructors: they are the caller's.
  ::_exit(0);
}

void throw_failure(const SharedText& outcome) {
  const std::string text = outcome.read();
  if (text.empty()) {
    throw Error({.kind = ErrorKind::system,
                 .what = "the process that runs the workers was killed; they have ended",
                 .where = "notebook_launcher"});
  }
  if (const std::optional<Error> failure = read_outcome(text)) throw Error(*failure);
}

}  // namespace acc::detail
