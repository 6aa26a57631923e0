// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/background_save.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace background_save_test {

using acc::detail::BackgroundSave;

namespace {

// How a child ends that calls `function`, and what it writes to standard error.
struct Ended {
  int status = 0;
  std::string said = {};
};

Ended in_child(void (*function)()) {
  const auto said = acc::test::temporary_folder() / "said";
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // not Catch's
    ::dup2(::open(said.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
    function();
    ::_exit(0);
  }
  Ended ended;
  ::waitpid(child, &ended.status, 0);
  ended.said = acc::read_file(said);
  return ended;
}

void fail() {
  throw std::runtime_error("the disk is full");
}

}  // namespace

TEST_CASE("background save: it runs on a thread, and the next one starts when it has ended", "[runtime]") {
  BackgroundSave saves;
  std::thread::id thread;
  int finished = 0;
  saves.start([&] { thread = std::this_thread::get_id(); });
  saves.start([&] { ++finished; });
  CHECK(thread != std::thread::id());
  CHECK(thread != std::this_thread::get_id());
  saves.wait();
  CHECK(finished == 1);
  saves.wait();
  CHECK(finished == 1);
}

TEST_CASE("background save: its error is thrown by the next wait or start, once", "[runtime]") {
  BackgroundSave saves;
  int finished = 0;
  saves.start(fail);
  CHECK_THROWS_WITH(saves.start([&] { ++finished; }), "the disk is full");
  saves.wait();
  CHECK(finished == 0);
  saves.start(fail);
  CHECK_THROWS_WITH(saves.wait(), "the disk is full");
  saves.start([&] { ++finished; });
  saves.wait();
  CHECK(finished == 1);
}

TEST_CASE("background save: the destructor waits for it, and lets no signal reach its thread", "[runtime]") {
  sigset_t blocked;
  sigemptyset(&blocked);
  {
    BackgroundSave saves;
    saves.start([&] { pthread_sigmask(SIG_SETMASK, nullptr, &blocked); });
  }
  CHECK(sigismember(&blocked, SIGTERM) == 1);
}

TEST_CASE("background save: a program does not end well with an error that nobody has seen", "[runtime]") {
  const Ended ended = in_child([] {
    BackgroundSave saves;
    saves.start(fail);
  });
  INFO(ended.said);
  CHECK(WIFSIGNALED(ended.status));
  CHECK(WTERMSIG(ended.status) == SIGABRT);
  CHECK(ended.said.find("the disk is full") != std::string::npos);
}

TEST_CASE("background save: the error of the program itself is not hidden by one of the save", "[runtime]") {
  const Ended ended = in_child([] {
    try {
      BackgroundSave saves;
      saves.start(fail);
      throw std::logic_error("another");
    } catch (const std::logic_error& error) {
      std::fputs(error.what(), stderr);
    }
  });
  CHECK(ended.status == 0);
  CHECK(ended.said == "acc: a checkpoint was not saved: the disk is full\nanother");
}

}  // namespace background_save_test
