// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/launch/exit_status.hpp"
#include "support/temporary_folder.hpp"

namespace acc::test {

using namespace launcher;

/// Long enough for a loaded machine: only a test that fails waits so long.
constexpr int kTimeoutMs = 60'000;

std::string program(const std::string& name);

/// A descriptor that becomes readable when the process ends; empty if it has ended.
Descriptor watch(pid_t pid);

/// Waits until all have ended. Returns false if one is alive after kTimeoutMs.
bool all_gone(const std::vector<Descriptor>& processes);

/// A FIFO to which stub workers report what they do.
class ReportFifo {
 public:
  ReportFifo();
  std::string path() const { return (folder_.path() / "fifo").string(); }
  /// The next line; throws if none comes.
  std::string next();
  /// The pid at the end of the next line.
  pid_t next_process();
  /// Descriptors to watch(), for the pids at the end of `count` lines.
  std::vector<Descriptor> next_processes(int count);

 private:
  TemporaryFolder folder_;
  Descriptor fifo_;
  std::string text_ = {};
};

/// The streams of the supervisor.
struct Streams3 {
  std::string input = {};
  bool terminal_out = false;
  bool terminal_err = false;
  /// The supervisor leads a session whose terminal this is.
  bool own_session = false;
  /// A shell leads the session instead, and runs this script; "$@" is the supervisor.
  std::string script = {};
};

/// Runs acc::launcher::launch() in a process.
class Launched {
 public:
  explicit Launched(std::vector<std::string> arguments, const Streams3& streams = {});
  ~Launched();

  pid_t supervisor() const { return pid_; }
  /// The process between supervisor and agent.
  pid_t guardian() const;
  pid_t agent() const;
  void signal(int signal) const;
  /// Reads until the standard output holds `text`.
  void wait_for(const std::string& text);
  /// The same of its standard error.
  void wait_for_error(const std::string& text);
  /// Types into the terminal.
  void type(const std::string& keys) const;
  bool ends_within(int milliseconds) const;
  /// Reads everything until the supervisor ends.
  ExitStatus wait();

  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

 private:
  pid_t pid_ = 0;
  bool ended_ = false;
  Descriptor process_ = {};
  Descriptor out_end_ = {};
  Descriptor err_end_ = {};
  Descriptor terminal_ = {};
  std::string out_ = {};
  std::string err_ = {};
};

/// Runs `acc-test-launch-job options... acc-test-stub actions...` to its end.
struct Ran {
  int code = 0;
  std::string out = {};
  std::string err = {};
};
std::vector<std::string> stub(const std::vector<std::string>& options,
                              const std::vector<std::string>& actions);
Ran launch_stub(const std::vector<std::string>& options, const std::vector<std::string>& actions,
                const Streams3& streams = {});

}  // namespace acc::test
