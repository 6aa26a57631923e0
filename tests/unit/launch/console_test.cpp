// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/console.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "acc/launch/relay.hpp"
#include "support/catch.hpp"
#include "support/read_all.hpp"
#include "support/temporary_folder.hpp"

namespace console_test {

using namespace acc;
using namespace acc::launcher;
using acc::test::read_all;

namespace {

bool readable(int fd) {
  pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, 0) == 1;
}

Channel make_socket() {
  int ends[2] = {-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Channel make_terminal() {
  auto terminal = make_pseudo_terminal(0);
  REQUIRE(terminal);
  return std::move(*terminal);
}

}  // namespace

TEST_CASE("console: buffers in order what its reader does not read, and never blocks", "[launch]") {
  const auto make = GENERATE(as<Channel (*)()>{}, make_pipe, make_socket, make_terminal);
  const Channel channel = make();
  Console console(channel.workers.get());
  std::string all;
  for (int i = 0; i < 200; ++i) {
    const std::string part = std::string(9999, static_cast<char>('a' + i % 26)) + "\n";
    all += part;
    console.write(part);
  }
  CHECK(console.backlog() > 0);
  const Descriptor event = console.make_writable_event();
  // A terminal drains its buffer by itself.
  if (::isatty(channel.workers.get()) == 0) CHECK_FALSE(readable(event.get()));
  std::string seen = read_all(channel.ours.get());
  CHECK(readable(event.get()));
  while (!console.flush()) seen += read_all(channel.ours.get());
  seen += read_all(channel.ours.get());
  CHECK(seen == all);
  CHECK(console.backlog() == 0);
}

TEST_CASE("console: does not change the shared file description", "[launch]") {
  const auto make = GENERATE(as<Channel (*)()>{}, make_pipe, make_socket, make_terminal);
  const Channel channel = make();
  Console console(channel.workers.get());
  console.write(std::string(1 << 20, 'x'));
  const Descriptor event = console.make_writable_event();
  CHECK((::fcntl(channel.workers.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("console: without a reader everything is dropped", "[launch]") {
  ::signal(SIGPIPE, SIG_IGN);
  Channel channel = make_pipe();
  Console console(channel.workers.get());
  console.write(std::string(1 << 20, 'x'));
  channel.ours.reset();
  CHECK(console.flush());
  console.write("more");
  CHECK(console.backlog() == 0);
  CHECK(console.state() == Console::State::no_reader);
  ::signal(SIGPIPE, SIG_DFL);
}

TEST_CASE("console: a file is written at its offset", "[launch]") {
  const test::TemporaryFolder folder;
  const Descriptor file(::open((folder.path() / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::write(file.get(), "shell\n", 6) == 6);
  Console console(file.get());
  console.write("acc\n");
  CHECK(console.backlog() == 0);
  REQUIRE(::write(file.get(), "shell\n", 6) == 6);
  CHECK(folder.read("out") == "shell\nacc\nshell\n");
}

TEST_CASE("console: a closed descriptor drops everything", "[launch]") {
  Console console(-1);
  console.write("lost");
  CHECK(console.flush());
  CHECK(console.state() == Console::State::gone);
}

TEST_CASE("console: detects that two descriptors are the same file", "[launch]") {
  const Channel one = make_pipe();
  const Channel other = make_pipe();
  const Descriptor again(::fcntl(one.workers.get(), F_DUPFD_CLOEXEC, 3));
  CHECK(same_file(one.workers.get(), again.get()));
  CHECK_FALSE(same_file(one.workers.get(), other.workers.get()));
  CHECK_FALSE(same_file(one.workers.get(), -1));
}

TEST_CASE("console: text that did not fit on a full disk is written later, in order", "[launch]") {
  const test::TemporaryFolder folder;
  const Descriptor file(::open((folder.path() / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const Descriptor target(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Console console(target.get());
  console.write("one\n");
  CHECK(console.state() == Console::State::full);
  CHECK(console.error() == ENOSPC);
  CHECK(console.backlog() == 4);
  REQUIRE(::dup3(file.get(), target.get(), O_CLOEXEC) == target.get());
  console.write("two\n");
  CHECK(console.state() == Console::State::good);
  CHECK(console.give_up() == 0);
  CHECK(folder.read("out") == "one\ntwo\n");
}

TEST_CASE("console: the buffer for a full disk is limited", "[launch]") {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Console console(full.get());
  const std::string line(9999, 'x');
  for (int i = 0; i < 1000; ++i) console.write(line + "\n");
  CHECK(console.backlog() <= 1U << 20U);
  CHECK(console.give_up() == 10'000'000);
}

}  // namespace console_test
