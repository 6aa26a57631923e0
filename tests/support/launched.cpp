// SPDX-License-Identifier: Apache-2.0
#include "support/launched.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "acc/base/subprocess/command.hpp"
#include "acc/launch/process_tree.hpp"
#include "acc/launch/relay.hpp"

namespace acc::test {
namespace {

bool becomes_readable(int fd) {
  pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
  int seen = ::poll(&ready, 1, kTimeoutMs);
  while (seen < 0 && errno == EINTR) seen = ::poll(&ready, 1, kTimeoutMs);
  return seen == 1;
}

void wait_readable(int fd) {
  if (!becomes_readable(fd)) throw std::runtime_error("nothing happened");
}

// False at the end of the stream.
bool read_some(Descriptor& fd, std::string& text) {
  std::array<char, 1U << 16U> buffer;
  const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
  if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

Channel make_stream(bool terminal) {
  if (!terminal) return make_pipe();
  auto made = make_pseudo_terminal(0);
  if (!made) throw std::runtime_error("no pseudo-terminal");
  return std::move(*made);
}

pid_t only_child(pid_t parent) {
  for (const Descendant& process : descendants_of(parent)) {
    if (process.parent == parent) return process.pid;
  }
  throw std::runtime_error("no child");
}

}  // namespace

std::string program(const std::string& name) {
  return std::string(ACC_TEST_PROGRAMS) + "/" + name;
}

Descriptor watch(pid_t pid) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool all_gone(const std::vector<Descriptor>& processes) {
  for (const Descriptor& process : processes) {
    if (process && !becomes_readable(process.get())) return false;
  }
  return true;
}

ReportFifo::ReportFifo() {
  if (::mkfifo(path().c_str(), 0600) != 0) throw std::runtime_error("mkfifo failed");
  // Also a writer, so that there is no end of file between two workers.
  fifo_ = Descriptor(::open(path().c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
}

std::string ReportFifo::next() {
  while (text_.find('\n') == std::string::npos) {
    wait_readable(fifo_.get());
    read_some(fifo_, text_);
  }
  const std::size_t end = text_.find('\n');
  std::string line = text_.substr(0, end);
  text_.erase(0, end + 1);
  return line;
}

pid_t ReportFifo::next_process() {
  const std::string line = next();
  return std::stoi(line.substr(line.rfind(' ') + 1));
}

std::vector<Descriptor> ReportFifo::next_processes(int count) {
  std::vector<Descriptor> processes;
  for (int i = 0; i < count; ++i) processes.push_back(watch(next_process()));
  return processes;
}

Launched::Launched(std::vector<std::string> arguments, const Streams3& streams) {
  Channel out = make_stream(streams.terminal_out);
  Channel err = streams.terminal_out && streams.terminal_err ? Channel{} : make_stream(streams.terminal_err);
  Channel in = make_pipe();
  // Turned round: here the supervisor reads.
  arguments.insert(arguments.begin(), program("acc-test-launch-job"));
  if (!streams.script.empty()) {
    arguments.insert(arguments.begin(), {"/bin/sh", "-c", streams.script, "sh"});
  }
  const std::vector<char*> argv = pointers_to(arguments);
  const int err_fd = err.workers ? err.workers.get() : out.workers.get();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) {
    if (streams.own_session) {
      ::setsid();
      ::ioctl(out.workers.get(), TIOCSCTTY, 0);
      termios mode = {};
      ::tcgetattr(out.workers.get(), &mode);
      mode.c_lflag |= ISIG | ICANON | ECHO;  // Ctrl-C is a signal, as at a shell
      mode.c_iflag |= ICRNL;
      ::tcsetattr(out.workers.get(), TCSANOW, &mode);
    }
    ::fcntl(in.ours.get(), F_SETFL, 0);
    ::dup2(streams.own_session ? out.workers.get() : in.ours.get(), 0);
    ::dup2(out.workers.get(), 1);
    ::dup2(err_fd, 2);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  if (::write(in.workers.get(), streams.input.data(), streams.input.size()) < 0) {
    throw std::runtime_error("write failed");
  }
  process_ = watch(pid_);
  if (streams.own_session) terminal_ = Descriptor(::fcntl(out.ours.get(), F_DUPFD_CLOEXEC, 3));
  out_end_ = std::move(out.ours);
  err_end_ = std::move(err.ours);
}

Launched::~Launched() {
  if (ended_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

pid_t Launched::guardian() const {
  return only_child(pid_);
}

pid_t Launched::agent() const {
  return only_child(guardian());
}

void Launched::signal(int signal) const {
  ::kill(pid_, signal);
}

void Launched::type(const std::string& keys) const {
  if (::write(terminal_.get(), keys.data(), keys.size()) < 0) throw std::runtime_error("write failed");
}

bool Launched::ends_within(int milliseconds) const {
  pollfd ready = {.fd = process_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, milliseconds) == 1;
}

void Launched::wait_for(const std::string& text) {
  while (out_.find(text) == std::string::npos) {
    wait_readable(out_end_.get());
    if (!read_some(out_end_, out_)) throw std::runtime_error("never said: " + text);
  }
}

void Launched::wait_for_error(const std::string& text) {
  while (err_.find(text) == std::string::npos) {
    wait_readable(err_end_.get());
    if (!read_some(err_end_, err_)) throw std::runtime_error("never said: " + text);
  }
}

ExitStatus Launched::wait() {
  while (out_end_ || err_end_) {
    std::array<pollfd, 3> ready = {
        {{out_end_.get(), POLLIN, 0}, {err_end_.get(), POLLIN, 0}, {process_.get(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), kTimeoutMs) <= 0) throw std::runtime_error("the supervisor hangs");
    bool idle = true;
    if (ready[0].revents != 0) {
      idle = false;
      if (!read_some(out_end_, out_)) out_end_.reset();
    }
    if (ready[1].revents != 0) {
      idle = false;
      if (!read_some(err_end_, err_)) err_end_.reset();
    }
    // Ended, and nothing left to read, although somebody may hold the other end.
    if (idle && ready[2].revents != 0) break;
  }
  wait_readable(process_.get());
  int status = 0;
  ::waitpid(pid_, &status, 0);
  ended_ = true;
  return to_exit_status(status);
}

std::vector<std::string> stub(const std::vector<std::string>& options,
                              const std::vector<std::string>& actions) {
  std::vector<std::string> arguments = options;
  arguments.push_back(program("acc-test-stub"));
  arguments.insert(arguments.end(), actions.begin(), actions.end());
  return arguments;
}

Ran launch_stub(const std::vector<std::string>& options, const std::vector<std::string>& actions,
                const Streams3& streams) {
  Launched launched(stub(options, actions), streams);
  const int code = shell_code(launched.wait());
  return {code, launched.out(), launched.err()};
}

}  // namespace acc::test
