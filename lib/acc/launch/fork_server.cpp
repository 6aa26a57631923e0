// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/fork_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/limit_hint.hpp"
#include "acc/base/log.hpp"
#include "acc/base/text.hpp"
#include "acc/control/process_table.hpp"
#include "acc/launch/exit_status.hpp"
#include "acc/plan/preemption.hpp"
#include "acc/plan/preload.hpp"
#include "acc/plan/worker_environment.hpp"

namespace acc::launcher {
namespace {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

constexpr std::string_view kProgram =
#include "fork_server_program.inc"
    ;

// Its output is a file with kProgram until it has begun.
constexpr const char* kRunProgram =
    "import os; exec(compile(os.pread(1, os.fstat(1).st_size, 0), '<acc fork server>', 'exec'), "
    "{'__name__': 'acc_fork_server'})";

// A server that does not answer for so long is given up.
constexpr int kMaxAnswerMs = 10'000;

// Messages can end with the first line of an exception, which is cut here.
constexpr std::size_t kMaxMessage = 4096;

[[noreturn]] void throw_preload_error(const char* what) {
  throw Error({.kind = ErrorKind::system,
               .what = fmt::format("{}: {}", what, std::strerror(errno)),
               .where = "--preload",
               .hint = limit_hint(errno)});
}

Descriptor make_file(std::string_view text) {
  Descriptor file(::memfd_create("acc-preload", MFD_CLOEXEC));
  if (!file || !write_all(file.get(), text)) throw_preload_error("no memory for what workers get");
  return file;
}

struct SocketPair {
  Descriptor parent = {};
  Descriptor child = {};
};

SocketPair make_sockets() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) throw_preload_error("no socket");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::string with_nuls(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined.append(text.c_str(), text.size() + 1);
  return joined;
}

// The format that Request of fork_server.py reads.
std::string request_text(const ProcessLauncher& launcher, const WorkerStart& worker) {
  const CpuBinding binding = worker.binding.value_or(CpuBinding{});
  std::vector<std::string> texts = {
      fmt::to_string(::getpid()), fmt::format("{}", fmt::join(binding.cpus, ",")),
      fmt::format("{}", fmt::join(binding.numa_nodes, ",")), fmt::to_string(worker.arguments.size())};
  texts.insert(texts.end(), worker.arguments.begin(), worker.arguments.end());
  const std::vector<std::string> variables = launcher.environment.to_strings();
  texts.insert(texts.end(), variables.begin(), variables.end());
  return with_nuls(texts);
}

std::vector<std::string> server_command(const LaunchPlan& plan, const PreloadEnvironment& environment) {
  const std::vector<std::string> worker = worker_command(plan, 0);
  const bool same = worker == worker_command(plan, plan.nproc_per_node - 1);
  std::vector<std::string> command = {worker.front(),
                                      "-c",
                                      kRunProgram,
                                      join(plan.preload, ","),
                                      join(environment.per_worker, ","),
                                      same ? "1" : "0",
                                      fmt::to_string(SYS_set_mempolicy)};
  command.insert(command.end(), worker.begin() + 1, worker.end());
  if (worker.at(1) == "-u") command.insert(command.begin() + 1, "-u");
  return command;
}

enum class Answer { pid, none, late };

// Waits for the worker's process id. None: the worker or the server has ended.
std::pair<Answer, pid_t> read_answer(int channel) {
  pollfd answer = {.fd = channel, .events = POLLIN, .revents = 0};
  int ready = 0;
  while ((ready = ::poll(&answer, 1, kMaxAnswerMs)) < 0 && errno == EINTR) {
  }
  if (ready == 0) return {Answer::late, 0};
  std::array<char, 32> text;
  const ssize_t size = ::recv(channel, text.data(), text.size(), 0);
  const auto pid = parse_integer({text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))});
  if (!pid) return {Answer::none, 0};
  return {Answer::pid, static_cast<pid_t>(*pid)};
}

// A child that has not been waited for keeps its process id.
bool is_child(pid_t pid) {
  siginfo_t info = {};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

ForkServer::ForkServer(boost::asio::io_context& loop, const LaunchPlan& plan, std::optional<WarmPython> warm)
    : loop_(loop),
      plan_(plan),
      warm_(warm),
      control_(loop),
      clock_(plan.hang.timeout, plan.hang.watch),
      timer_(loop) {}

bool ForkServer::prepare(const rlimit& open_files, OnPrepared on_prepared) {
  if (ready_ || refused_) return false;
  on_prepared_ = std::move(on_prepared);
  if (process_) return true;
  try {
    start(open_files);
    return true;
  } catch (const Error& error) {
    // Workers that start cold say what is wrong with the program.
    log::debug("there is no fork server: {}", error.what());
    refused_ = true;
    return false;
  }
}

void ForkServer::start(const rlimit& open_files) {
  const PreloadEnvironment environment = preload_environment(plan_);
  const std::vector<std::string> command = server_command(plan_, environment);
  const Descriptor text = make_file(kProgram);
  SocketPair control = make_sockets();
  const ProcessLauncher launcher = {.environment = environment.shared,
                                    .in = control.child.get(),
                                    .out = text.get(),
                                    .grouping = ProcessGrouping::session,
                                    .ignored_signals = signals_that_workers_ignore(plan_),
                                    .open_files = open_files};
  begin_module("");
  process_ = wake(command, environment.shared, control.child, text);
  if (!process_) process_ = launcher(loop_.get_executor(), plan_.program, command);
  log::debug("process {} imports {} for the workers", process_->id(), join(plan_.preload, ", "));
  control_.assign(control.parent.release());
  wait_for_message();
  clock_.restart(RunningClock::now());
  watch_import();
  process_->async_wait([this](error_code error, int /*exit_code*/) {
    if (!error) on_end();
  });
}

// Gives the warm Python what a new one would have been started with. Returns nullopt when there is none, or
// it has ended.
std::optional<Process> ForkServer::wake(const std::vector<std::string>& command,
                                        const Environment& environment, const Descriptor& control,
                                        const Descriptor& program) {
  if (!warm_) return std::nullopt;
  const WarmPython python = *std::exchange(warm_, std::nullopt);
  std::vector<std::string> texts = {fmt::to_string(command.size())};
  texts.insert(texts.end(), command.begin(), command.end());
  const std::vector<std::string> variables = environment.to_strings();
  texts.insert(texts.end(), variables.begin(), variables.end());
  const Descriptor request = make_file(with_nuls(texts));
  const std::array descriptors = {request.get(), control.get(), program.get()};
  if (!send_message(python.socket, "w", descriptors, MSG_DONTWAIT) || !is_child(python.pid))
    return std::nullopt;
  Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, python.pid, 0)));
  if (!pidfd) throw_preload_error("no descriptor for the fork server");
  return Process(loop_.get_executor(), python.pid, pidfd.release());
}

void ForkServer::wait_for_message() {
  control_.async_wait(stream_descriptor::wait_read, [this](error_code error) {
    if (!error && read_messages()) wait_for_message();
  });
}

// Returns false when no message is to come.
bool ForkServer::read_messages() {
  std::array<char, kMaxMessage> text;
  while (process_ && !ready_) {
    const ssize_t size = ::recv(control_.native_handle(), text.data(), text.size(), MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size == 0) return false;
    on_message({text.data(), static_cast<std::size_t>(size)});
  }
  return false;
}

void ForkServer::on_message(std::string_view text) {
  log::debug("the fork server says: {}", text);
  ++messages_;
  constexpr std::string_view kImport = "import ";
  constexpr std::string_view kRefused = "refused ";
  if (text == "ready") {
    ready_ = true;
    on_prepared_("");
  } else if (text.starts_with(kImport)) {
    begin_module(text.substr(kImport.size()));
  } else if (text.starts_with(kRefused)) {
    refuse(std::string(text.substr(kRefused.size())));
  }
}

void ForkServer::begin_module(std::string_view module) {
  module_ = module;
  module_began_ = std::chrono::system_clock::now();
}

std::optional<ImportView> ForkServer::importing() const {
  if (!process_ || ready_) return std::nullopt;
  return ImportView{.pid = pid(), .module = module_, .started = module_began_};
}

void ForkServer::on_end() {
  const ExitStatus status = to_exit_status(process_->native_exit_code());
  // It has said why before it ended.
  read_messages();
  if (!process_) return;
  log::debug("the fork server was ended by {}", to_string(status));
  // The next attempt starts another.
  if (ready_) return stop();
  refuse(module_.empty() ? fmt::format("{} ended with {}", plan_.program.string(), to_string(status))
                         : fmt::format("importing {} ends the process with {}", module_, to_string(status)));
}

// The hang is then seen in the workers, with the stacks of each.
void ForkServer::watch_import() {
  if (plan_.hang.timeout.count() == 0) return;
  timer_.expires_after(clock_.interval());
  timer_.async_wait([this](error_code error) {
    if (error || ready_ || !process_) return;
    RankActivity activity = {.written = messages_};
    const ProcessTable table = ProcessTable::read();
    for (const ProcessStat* process : table.tree(process_->id()))
      activity.cpu_time += exact_cpu_time(*process);
    const auto now = RunningClock::now();
    if (clock_.observe({activity}, now)) return refuse(fmt::format("importing {} hangs", module_));
    watch_import();
  });
}

void ForkServer::refuse(const std::string& reason) {
  refused_ = true;
  stop();
  on_prepared_(reason);
}

void ForkServer::stop() {
  ready_ = false;
  timer_.cancel();
  control_.close();
  process_.reset();
}

std::optional<Process> ForkServer::fork(const ProcessLauncher& launcher, const WorkerStart& worker) {
  if (!ready_) return std::nullopt;
  SocketPair channel = make_sockets();
  const Descriptor request = make_file(request_text(launcher, worker));
  const auto or_standard = [](int descriptor, int standard) {
    return descriptor >= 0 ? descriptor : standard;
  };
  const std::array descriptors = {request.get(), or_standard(launcher.in, STDIN_FILENO),
                                  or_standard(launcher.out, STDOUT_FILENO),
                                  or_standard(launcher.err, STDERR_FILENO), channel.child.get()};
  if (!send_message(control_.native_handle(), "w", descriptors, MSG_DONTWAIT)) return std::nullopt;
  channel.child.reset();
  const auto [answer, pid] = read_answer(channel.parent.get());
  if (answer == Answer::late) stop();
  if (answer != Answer::pid || !is_child(pid)) return std::nullopt;
  Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) throw_preload_error("no descriptor for a worker");
  constexpr char kBegin = 'b';
  ::send(channel.parent.get(), &kBegin, sizeof kBegin, MSG_NOSIGNAL);
  return Process(loop_.get_executor(), pid, pidfd.release());
}

}  // namespace acc::launcher
