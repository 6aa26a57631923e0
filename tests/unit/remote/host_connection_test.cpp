// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/host_connection.hpp"

#include <csignal>

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/shell_script.hpp"

namespace host_connection_test {

using acc::Environment;
using acc::launcher::encode;
using acc::launcher::Exited;
using acc::launcher::ExitStatus;
using acc::launcher::Frame;
using acc::launcher::FrameKind;
using acc::launcher::greeting;
using acc::launcher::HostConnection;
using acc::launcher::Signaled;
using acc::test::command_that_writes;

namespace {

/// A connection to a shell script in the place of ssh.
struct Script {
  explicit Script(
      const std::string& text, std::function<bool()> takes_output = [] { return true; },
      HostConnection::Child child = HostConnection::Child::ssh) {
    connection = std::make_shared<HostConnection>(
        loop, HostConnection::Events{.on_frame = [this](const Frame& frame) { frames.push_back(frame); },
                                     .on_end = [this] { ++ends; },
                                     .takes_output = std::move(takes_output)});
    connection->open({"sh", "-c", text}, Environment::of_process(), child);
  }

  boost::asio::io_context loop{1};
  std::vector<Frame> frames = {};
  int ends = 0;
  std::shared_ptr<HostConnection> connection = {};
};

const std::string kHello = command_that_writes("Welcome" + greeting() + encode(FrameKind::out, "text"));

}  // namespace

TEST_CASE("host_connection: frames and the end of the child arrive, errors beside them", "[remote]") {
  Script script("echo oops >&2; " + kHello + "; exit 3");
  script.loop.run();
  CHECK(script.frames == std::vector<Frame>{{FrameKind::out, "text"}});
  CHECK(script.ends == 1);
  CHECK(script.connection->status() == ExitStatus(Exited{3}));
  CHECK(script.connection->errors() == "oops\n");
  CHECK(script.connection->preamble() == "Welcome");
}

TEST_CASE("host_connection: what is sent arrives, and its end does with the connection", "[remote]") {
  const std::string frame = encode(FrameKind::signal, "15");
  Script script("test \"$(head -c " + std::to_string(frame.size()) + ")\" = \"$(" +
                command_that_writes(frame) + ")\"");
  script.connection->send(FrameKind::signal, "15");
  script.loop.run();
  CHECK(script.connection->status() == ExitStatus(Exited{0}));
}

TEST_CASE("host_connection: ssh outlives the signals that stop the client, an agent obeys them", "[remote]") {
  const std::string signal = GENERATE("TERM", "INT", "QUIT", "USR1", "USR2");
  const std::string text = "kill -" + signal + " $$; " + kHello + "; exit 3";
  Script ssh(text);
  ssh.loop.run();
  CHECK(ssh.frames.size() == 1);
  CHECK(ssh.connection->status() == ExitStatus(Exited{3}));
  Script agent(text, [] { return true; }, HostConnection::Child::agent);
  agent.loop.run();
  CHECK(agent.frames.empty());
}

TEST_CASE("host_connection: what is no frame ends the child", "[remote]") {
  Script script(command_that_writes(greeting()) + "; echo hello to all; exec cat");
  script.loop.run();
  CHECK(script.ends == 1);
  CHECK(script.connection->status() == ExitStatus(Signaled{SIGKILL}));
  CHECK(script.connection->errors().find("something else than acc's frames") != std::string::npos);
}

TEST_CASE("host_connection: output that cannot be taken is not read", "[remote]") {
  bool takes = false;
  const std::string exit = command_that_writes(encode(FrameKind::exit, "0"));
  Script script(kHello + "; head -c 5 >/dev/null; " + exit + "; echo written >&2; head -c 5 >/dev/null",
                [&] { return takes; });
  while (!script.connection->is_stalled()) script.loop.run_one();
  script.connection->send(FrameKind::heartbeat);
  while (script.connection->errors() != "written\n") script.loop.run_one();
  script.connection->resume();  // others have room
  CHECK(script.frames.size() == 1);
  CHECK(script.connection->is_stalled());
  takes = true;
  script.connection->resume();
  while (script.frames.size() == 1) script.loop.run_one();
  script.connection->send(FrameKind::heartbeat);
  script.loop.run();
  CHECK(script.ends == 1);
}

TEST_CASE("host_connection: ends with the child, whatever holds its streams", "[remote]") {
  Script script("setsid sleep 1000 & echo $! >&2; " + kHello + "; exit 3");
  script.loop.run();
  CHECK(script.frames == std::vector<Frame>{{FrameKind::out, "text"}});
  CHECK(script.ends == 1);
  CHECK(script.connection->status() == ExitStatus(Exited{3}));
  ::kill(std::stoi(script.connection->errors()), SIGKILL);
}

TEST_CASE("host_connection: kills the child with its group", "[remote]") {
  Script script("sleep 1000 & " + kHello + "; wait");
  while (script.frames.empty()) script.loop.run_one();
  script.connection->kill();
  script.loop.run();  // returns when the background process has closed the streams, too
  CHECK(script.connection->status() == ExitStatus(Signaled{SIGKILL}));
}

TEST_CASE("host_connection: a program that is missing is named", "[remote]") {
  boost::asio::io_context loop(1);
  const auto connection = std::make_shared<HostConnection>(loop, HostConnection::Events{});
  CHECK(acc::test::error_of([&] { connection->open({"no-such-ssh", "b"}, Environment::of_process()); }) ==
        "no-such-ssh: is not installed (apt-get install openssh-client; ACC_RSH names another program)");
}

}  // namespace host_connection_test
