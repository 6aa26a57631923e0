// SPDX-License-Identifier: Apache-2.0
#include "acc/base/subprocess/process_launcher.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace process_launcher_test {

using namespace acc;
using test::error_of;

namespace {

const Environment kEnvironment = {{"PATH", "/usr/bin:/bin"}};

// Runs a shell script in a child until it ends.
int status_of(const ProcessLauncher& launcher, const std::string& script) {
  boost::asio::io_context loop;
  Process child = launcher(loop.get_executor(), "/bin/sh", {"sh", "-c", script});
  child.async_wait([](boost::system::error_code, int) {});
  loop.run();
  return child.native_exit_code();
}

std::string output_of(ProcessLauncher launcher, const std::string& script) {
  const test::TemporaryFolder folder;
  const Descriptor file(::open((folder.path() / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  launcher.out = file.get();
  CHECK(WIFEXITED(status_of(launcher, script)));
  return folder.read("out");
}

// The same for a fork that calls `run`.
int status_of_fork(const ProcessLauncher& launcher, const std::function<int()>& run) {
  boost::asio::io_context loop;
  Process child = launcher.fork(loop.get_executor(), run);
  child.async_wait([](boost::system::error_code, int) {});
  loop.run();
  return child.native_exit_code();
}

}  // namespace

TEST_CASE("process launcher: exit codes differ from signals", "[base]") {
  const ProcessLauncher launcher = {.environment = kEnvironment};
  const int code = status_of(launcher, "exit 9");
  CHECK((WIFEXITED(code) && WEXITSTATUS(code) == 9));
  const int signal = status_of(launcher, "kill -9 $$");
  CHECK((WIFSIGNALED(signal) && WTERMSIG(signal) == SIGKILL));
}

TEST_CASE("process launcher: a child has its environment, default signals, no mask and three descriptors",
          "[base]") {
  ::signal(SIGUSR1, SIG_IGN);
  const Descriptor leaked(::open("/dev/null", O_RDONLY));
  const std::string text = output_of({.environment = Environment{{"PATH", "/usr/bin:/bin"}, {"WORD", "yes"}}},
                                     "echo $WORD; grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/$$/fd");
  ::signal(SIGUSR1, SIG_DFL);
  CHECK(text == "yes\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0\n1\n2\n");
}

TEST_CASE("process launcher: a child ignores the signals that it is to ignore", "[base]") {
  const std::string text = output_of({.environment = kEnvironment, .ignored_signals = {SIGUSR1, SIGUSR2}},
                                     "kill -USR1 $$; kill -USR2 $$; grep SigIgn /proc/self/status");
  CHECK(text == "SigIgn:\t0000000000000a00\n");
}

TEST_CASE("process launcher: resetting the changed signals is enough", "[base]") {
  const auto before = ::signal(SIGUSR1, SIG_IGN);
  const auto before_handled = ::signal(SIGUSR2, [](int) {});
  const std::vector<int> changed = changed_signals();
  CHECK(std::ranges::count(changed, SIGUSR1) == 1);
  CHECK(std::ranges::count(changed, SIGUSR2) == 1);
  CHECK(std::ranges::count(changed, SIGALRM) == 0);
  const std::string text =
      output_of({.environment = kEnvironment, .signals_to_reset = changed, .ignored_signals = {SIGALRM}},
                "grep SigIgn /proc/self/status");
  ::signal(SIGUSR1, before);
  ::signal(SIGUSR2, before_handled);
  CHECK(text == "SigIgn:\t0000000000002000\n");
}

TEST_CASE("process launcher: a child leads a session, or a group of ours", "[base]") {
  const std::string ids = "echo $(ps -o pid= -o pgid= -o sid= -p $$) $$";
  const auto leads = [&](ProcessGrouping grouping) {
    std::istringstream words(output_of({.environment = kEnvironment, .grouping = grouping}, ids));
    pid_t pid = 0;
    pid_t group = 0;
    pid_t session = 0;
    words >> pid >> group >> session;
    CHECK(group == pid);
    return session;
  };
  CHECK(leads(ProcessGrouping::group) == ::getsid(0));
  CHECK(leads(ProcessGrouping::session) != ::getsid(0));
}

TEST_CASE("process launcher: sets limits, and calls before_exec", "[base]") {
  ProcessLauncher launcher = {.environment = kEnvironment, .open_files = rlimit{99, 99}};
  launcher.before_exec = [] { return ::chdir("/proc") == 0; };
  CHECK(output_of(launcher, "ulimit -n; pwd") == "99\n/proc\n");
  launcher.before_exec = [] { return ::chdir("/no/such/folder") == 0; };
  CHECK(error_of([&] { status_of(launcher, "true"); }) ==
        "/bin/sh: cannot be started: No such file or directory");
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("process launcher: of a script that cannot be started the interpreter is named", "[base]") {
  const test::TemporaryFolder folder;
  boost::asio::io_context loop;
  const auto refusal = [&](const std::string& text) {
    const auto script = folder.write("script", text);
    REQUIRE(::chmod(script.c_str(), 0755) == 0);
    const std::string error = error_of(
        [&] { ProcessLauncher{.environment = kEnvironment}(loop.get_executor(), script, {"script"}); });
    REQUIRE(error.starts_with(script.string() + ": "));
    return error.substr(script.string().size() + 2);
  };
  CHECK(
      refusal("#! /no/such/sh -e\n") ==
      "cannot be started: its interpreter /no/such/sh: No such file or directory (its first line names it)");
  CHECK(refusal("#!/bin/sh\r\n")
            .starts_with("cannot be started: its first line names /bin/sh with a carriage return behind it "
                         "(its lines end as on Windows: sed -i 's/\\r$//' "));
  CHECK(refusal("echo\n") ==
        "cannot be started: Exec format error (a script needs a first line like #!/bin/sh)");
}

TEST_CASE("process launcher: destroying a child kills and reaps it", "[base]") {
  boost::asio::io_context loop;
  pid_t pid = 0;
  {
    const Process child =
        ProcessLauncher{.environment = kEnvironment}(loop.get_executor(), "/bin/sleep", {"sleep", "1000"});
    pid = child.id();
    CHECK(::kill(pid, 0) == 0);
  }
  CHECK(::waitpid(pid, nullptr, WNOHANG) == -1);
}

TEST_CASE("process launcher: a fork has its environment, default signals, no mask and our descriptors",
          "[base]") {
  ::signal(SIGUSR1, SIG_IGN);
  const Descriptor kept(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::setenv("ACC_TEST_OURS", "1", 1);
  const int status = status_of_fork({.environment = {{"WORD", "yes"}}}, [&] {
    sigset_t mask;
    ::sigprocmask(SIG_BLOCK, nullptr, &mask);
    for (int signal = 1; signal < NSIG; ++signal)
      if (::sigismember(&mask, signal) == 1) return 10;
    struct sigaction action = {};
    ::sigaction(SIGUSR1, nullptr, &action);
    if (action.sa_handler != SIG_DFL) return 11;
    if (Environment::of_process() != Environment{{"WORD", "yes"}}) return 12;
    if (::fcntl(kept.get(), F_GETFD) < 0) return 13;
    return ::getsid(0) == ::getpid() ? 7 : 14;
  });
  ::unsetenv("ACC_TEST_OURS");
  ::signal(SIGUSR1, SIG_DFL);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
}

TEST_CASE("process launcher: a fork that cannot be set up does not run", "[base]") {
  ProcessLauncher launcher;
  launcher.before_exec = [] { return false; };
  const int status = status_of_fork(launcher, [] { return 0; });
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 127));
}

}  // namespace process_launcher_test
