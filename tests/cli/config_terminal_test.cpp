// SPDX-License-Identifier: Apache-2.0
// `acc config` in a pseudo-terminal, whose keys and screen the test controls.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <array>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"
#include "support/catch.hpp"
#include "support/run.hpp"
#include "support/temporary_folder.hpp"

namespace config_terminal_test {

using acc::test::TemporaryFolder;

namespace {

constexpr int kGiveUpAfter = 20'000;  // ms; only a broken program takes that long

// `acc config --config_file c.yaml` in a terminal of its own.
class Session {
 public:
  explicit Session(const TemporaryFolder& folder) {
    if (::openpty(&master_, &slave_, nullptr, nullptr, nullptr) != 0) throw std::runtime_error("no terminal");
    const std::string program = (acc::program_folder() / "acc").string();
    std::vector<std::string> variables = acc::test::clean_environment(folder.path().string()).to_strings();
    const std::vector<char*> environment = acc::pointers_to(variables);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::close(master_);
    if (::login_tty(slave_) == 0 && ::chdir(folder.path().c_str()) == 0)
      ::execle(program.c_str(), "acc", "config", "--config_file", "c.yaml", nullptr, environment.data());
    ::_exit(127);
  }
  ~Session() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(master_);
    ::close(slave_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  pid_t pid() const { return pid_; }

  void type(const std::string& keys) const {
    REQUIRE(::write(master_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }

  // Waits until the text is on the screen, after the text of the last wait.
  void see(const std::string& text) {
    std::size_t position = screen_.find(text, seen_);
    while (position == std::string::npos) {
      INFO(screen_);
      pollfd ready = {.fd = master_, .events = POLLIN, .revents = 0};
      REQUIRE(::poll(&ready, 1, kGiveUpAfter) == 1);
      std::array<char, 4096> buffer = {};
      const ssize_t n = ::read(master_, buffer.data(), buffer.size());
      REQUIRE(n > 0);
      screen_.append(buffer.data(), static_cast<std::size_t>(n));
      position = screen_.find(text, seen_);
    }
    seen_ = position + text.size();
  }

  // Until the program waits for a key. ThreadSanitizer holds back a signal that comes right before that until
  // the wait is over.
  void await_wait() const {
    const std::string call = std::to_string(SYS_ppoll);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(kGiveUpAfter);
    while (std::chrono::steady_clock::now() < give_up) {
      std::ifstream file("/proc/" + std::to_string(pid_) + "/syscall");
      std::string number;
      std::string descriptors;
      std::string count;
      if (!(file >> number)) return;  // not allowed here
      if (number == call && file >> descriptors >> count && count == "0x1") return;
      std::this_thread::yield();
    }
    FAIL("it does not wait for a key");
  }

  // As a shell sees it.
  int exit_code() {
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  bool is_cooked() const {
    termios now = {};
    REQUIRE(::tcgetattr(slave_, &now) == 0);
    constexpr tcflag_t kCooked = ICANON | ECHO | ISIG | IEXTEN;
    return (now.c_lflag & kCooked) == kCooked;
  }

  // The whole output, after the program has closed the terminal.
  std::string whole_screen() {
    ::close(std::exchange(slave_, -1));
    std::array<char, 4096> buffer = {};
    for (ssize_t n = 1; n > 0;) {
      n = ::read(master_, buffer.data(), buffer.size());
      if (n > 0) screen_.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return screen_;
  }

  bool cursor_is_shown() const { return screen_.rfind("\x1b[?25h") > screen_.rfind("\x1b[?25l"); }

 private:
  int master_ = -1;
  int slave_ = -1;
  pid_t pid_ = -1;
  std::string screen_ = {};
  std::size_t seen_ = 0;
};

}  // namespace

TEST_CASE("config in a terminal: keys choose, and the file is written", "[cli]") {
  const TemporaryFolder folder;
  Session session(folder);
  session.see("Where does the training run?");
  session.type("\r");
  session.see("Which kind of training?");
  session.type("j\r");
  session.see("How many machines?");
  session.type("\r\r\r\r");
  session.see("How many processes");
  session.type(
      "3\x7f"
      "2\r");
  session.see("Which mixed precision?");
  session.type("\x1b[F\x1b[A\r");
  session.see("The configuration was saved at c.yaml");
  CHECK(session.exit_code() == 0);
  CHECK(session.is_cooked());
  CHECK(session.cursor_is_shown());
  const std::string file = folder.read("c.yaml");
  CHECK(file.find("distributed_type: MULTI_CPU\n") != std::string::npos);
  CHECK(file.find("num_processes: 2\n") != std::string::npos);
  CHECK(file.find("mixed_precision: bf16\n") != std::string::npos);
}

TEST_CASE("config in a terminal: the screen, byte by byte, with help and a step back", "[cli]") {
  const std::string keys =
      "(arrows, j/k, numbers from 0 or letters, then Enter; Esc: back, ?: help)\r\n\x1b[?25l";
  const std::string arrow = " \u2794  \x1b[32m";
  const std::string environment_menu = "Where does the training run?\r\n" + keys + arrow +
                                       "This machine\x1b[0m\r\n    AWS (Amazon SageMaker)\r\n";
  const std::string type_menu =
      "Which kind of training?\r\n" + keys + arrow +
      "No distributed training\x1b[0m\r\n    multi-CPU\r\n    multi-XPU\r\n    multi-HPU\r\n"
      "    multi-GPU\r\n    multi-NPU\r\n    multi-MLU\r\n    multi-SDAA\r\n    multi-MUSA\r\n"
      "    multi-NEURON\r\n    TPU\r\n";
  const std::string machines = "How many machines? [1] ";
  const TemporaryFolder folder;
  Session session(folder);
  session.see("SageMaker)\r\n");
  session.type("?");
  session.see("SageMaker)\r\n");
  session.type("\r");
  session.see("TPU\r\n");
  session.type("mu");
  session.see("\x1b[10B");
  session.type("\r");
  session.see(machines);
  session.type("2\r");
  session.see("    1\r\n");
  session.type("\x1b[D");
  session.see("[2] ");
  session.type("1\r\r\r\r\r\r");
  session.see("saved at c.yaml\r\n");
  CHECK(session.exit_code() == 0);
  CHECK(session.whole_screen() ==
        environment_menu + "\x1b[3A\r\x1b[J\x1b[?25h" +
            "Where the job runs. Key in the file: compute_environment.\r\n" + environment_menu +
            "\x1b[3A\r\x1b[J\x1b[32mThis machine\x1b[0m\r\n\x1b[?25h" + type_menu +
            "\x1b[11A\r\x1b[K    No distributed training\r\x1b[11B\x1b[10A\r\x1b[K" + arrow +
            "multi-CPU\x1b[0m\r\x1b[10B" + "\x1b[12A\r\x1b[J\x1b[32mmulti-CPU\x1b[0m\r\n\x1b[?25h" +
            machines + "2\r\nWhich rank does this machine have?\r\n" + keys + arrow +
            "0\x1b[0m\r\n    1\r\n" + "\x1b[3A\r\x1b[J\x1b[?25hHow many machines? [2] 1" +
            "\r\nCheck distributed operations while training (slower, for debugging)? [no] \r\n"
            "Start the workers through mpirun? [no] \r\nCompile the model with torch.compile (dynamo)? [no] "
            "\r\n"
            "How many processes in all, over all machines (one for each device)? [1] \r\n"
            "Which mixed precision?\r\n" +
            keys + arrow + "no\x1b[0m\r\n    fp16\r\n    bf16\r\n    fp8\r\n" +
            "\x1b[5A\r\x1b[J\x1b[32mno\x1b[0m\r\n\x1b[?25h\x1b[?25h\r\n"
            "compute_environment: LOCAL_MACHINE\r\ndebug: false\r\ndistributed_type: MULTI_CPU\r\n"
            "downcast_bf16: 'no'\r\nenable_cpu_affinity: false\r\nmachine_rank: 0\r\n"
            "main_training_function: main\r\nmixed_precision: 'no'\r\nnum_machines: 1\r\nnum_processes: 1\r\n"
            "rdzv_backend: static\r\nsame_network: true\r\ntpu_env: []\r\ntpu_use_cluster: false\r\n"
            "tpu_use_sudo: false\r\nuse_cpu: true\r\n\r\nThe configuration was saved at c.yaml\r\n");
}

TEST_CASE("config in a terminal: Ctrl-C restores it, writes nothing, exit 130", "[cli]") {
  const TemporaryFolder folder;
  const bool in_menu = GENERATE(true, false);
  Session session(folder);
  session.see("\x1b[?25l");
  if (!in_menu) {
    session.type("\r\r");
    session.see("Train on the CPU only");
  }
  session.type("\x03");
  session.see("^C");
  session.see("\x1b[?25h");
  CHECK(session.exit_code() == 130);
  CHECK(session.is_cooked());
  CHECK_FALSE(std::filesystem::exists(folder.path() / "c.yaml"));
}

TEST_CASE("config in a terminal: a signal restores the terminal", "[cli]") {
  const TemporaryFolder folder;
  const int signal = GENERATE(SIGTERM, SIGHUP, SIGINT);
  Session session(folder);
  session.see("\x1b[?25l");
  session.await_wait();
  CHECK_FALSE(session.is_cooked());
  REQUIRE(::kill(session.pid(), signal) == 0);
  session.see("\x1b[?25h");
  CHECK(session.exit_code() == 128 + signal);
  CHECK(session.is_cooked());
}

}  // namespace config_terminal_test
