// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/ssh.hpp"

#include "support/catch.hpp"

namespace ssh_test {

using acc::Environment;
using acc::ErrorKind;
using acc::OwnNames;
using acc::launcher::agent_command;
using acc::launcher::ConnectionProblem;
using acc::launcher::ended_by_silence;
using acc::launcher::Exited;
using acc::launcher::ExitStatus;
using acc::launcher::explain;
using acc::launcher::remote_shell;
using acc::launcher::RemoteShell;
using Words = std::vector<std::string>;

namespace {

const OwnNames kOwn = {.host_name = "here", .addresses = {"127.0.0.1"}};
constexpr auto kSilence = std::chrono::seconds(20);

RemoteShell shell_of(const Environment& environment, const std::string& acc = "/opt/acc/bin/acc") {
  return remote_shell(environment, acc, kOwn, kSilence);
}

std::string explained(std::optional<ExitStatus> status, const std::string& errors,
                      const std::string& output = "") {
  return to_string(explain({.host = "b", .status = status, .errors = errors, .output = output}, shell_of({}),
                           std::chrono::seconds(10))
                       .problem);
}

}  // namespace

TEST_CASE("ssh: asks nothing, notices silence, and starts the same acc", "[remote]") {
  CHECK(
      agent_command(shell_of({}), "me@b") ==
      Words{"ssh", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=4", "-o",
            "ControlMaster=no", "-T", "-x", "me@b",
            "sh -c 'if test -x \"$0\"; then exec \"$0\" agent; else exec acc agent; fi' '/opt/acc/bin/acc'"});
  // A quote in the path ends nothing.
  CHECK(agent_command(shell_of({}, "/o'k/acc"), "b").back().ends_with(" '/o'\\''k/acc'"));
}

TEST_CASE("ssh: ACC_RSH takes its place", "[remote]") {
  const Words direct = agent_command(shell_of({{"ACC_RSH", "/x/ssh -F  f"}}), "b");
  CHECK(Words(direct.begin(), direct.begin() + 5) == Words{"/x/ssh", "-F", "f", "-o", "BatchMode=yes"});
  const Words other = agent_command(shell_of({{"ACC_RSH", "enter node"}}), "b");
  CHECK(Words(other.begin(), other.end() - 1) == Words{"enter", "node", "b"});
  CHECK(agent_command(shell_of({{"ACC_RSH", " "}}), "b").front() == "ssh");
}

TEST_CASE("ssh: this machine is not reached through it", "[remote]") {
  const Words direct = {"/opt/acc/bin/acc", "agent"};
  CHECK(agent_command(shell_of({}), "localhost") == direct);
  CHECK(agent_command(shell_of({}), "here") == direct);
  // Another user, or an address, may be meant.
  CHECK(agent_command(shell_of({}), "me@here") != direct);
  CHECK(agent_command(shell_of({}), "127.0.0.1") != direct);
}

TEST_CASE("ssh: says that the other side was silent", "[remote]") {
  CHECK(ended_by_silence("Timeout, server b not responding.\r\n"));
  CHECK_FALSE(ended_by_silence("client_loop: send disconnect: Broken pipe\r\n"));
}

TEST_CASE("ssh: says that a server takes no login for now", "[remote]") {
  using acc::launcher::refuses_login_for_now;
  const std::string closed = "kex_exchange_identification: Connection closed by remote host\r\n";
  CHECK(refuses_login_for_now(closed));
  CHECK(refuses_login_for_now(closed + "Connection closed by UNKNOWN port 65535\r\n"));
  CHECK(
      refuses_login_for_now("kex_exchange_identification: read: Connection reset by peer\r\n"
                            "Connection reset by 10.0.0.1 port 22\r\n"));
  CHECK(refuses_login_for_now("ssh_exchange_identification: Connection closed by remote host\r\n"));
  // Another login would end in the same way, and may be counted as an attack.
  CHECK_FALSE(refuses_login_for_now("root@gate: Permission denied (publickey).\r\n" + closed));
  CHECK_FALSE(refuses_login_for_now("sh: 1: corkscrew: not found\n" + closed));
  CHECK_FALSE(refuses_login_for_now("Connection closed by 10.0.0.1 port 22\r\n"));
  CHECK_FALSE(refuses_login_for_now(""));
}

TEST_CASE("ssh: its failures are named with the host and a way out", "[remote]") {
  CHECK(explained(Exited{255}, "ssh: Could not resolve hostname b: Name or service not known\r\n") ==
        "ssh knows no host of this name: ssh: Could not resolve hostname b: Name or service not known (is "
        "it "
        "spelled right? ~/.ssh/config may give it a HostName)");
  CHECK(explained(Exited{255}, "banner\nroot@b: Permission denied (publickey).\n") ==
        "ssh was not let in: root@b: Permission denied (publickey). (a key without a passphrase, or an "
        "agent that "
        "has it, must be accepted there: ssh-copy-id b)");
  CHECK(explained(Exited{255}, "Host key verification failed.\n") ==
        "ssh does not know the host's key: Host key verification failed. (connect once by hand: ssh b)");
  CHECK(explained(Exited{255}, "ssh: connect to host b port 22: Connection refused\n") ==
        "no ssh server answers: ssh: connect to host b port 22: Connection refused (does sshd run there, "
        "and on "
        "that port?)");
  CHECK(explained(Exited{255},
                  "kex_exchange_identification: Connection closed by remote host\r\n"
                  "Connection closed by 10.0.0.1 port 22\r\n") ==
        "the ssh server, or a jump host, closes new connections: Connection closed by 10.0.0.1 port 22 "
        "(MaxStartups there limits the logins at a time; or is this machine blocked? try: ssh b true)");
  CHECK(explained({}, "") == "no answer within 10 s (is it up? try: ssh b true)");
  CHECK(explained(Exited{127}, "sh: 1: exec: acc: not found\n") ==
        "acc is missing there: neither /opt/acc/bin/acc nor acc on PATH: sh: 1: exec: acc: not found "
        "(install it at "
        "the same path, or on the PATH of a shell that nobody logs in to)");
  CHECK(explained(Exited{2}, "acc: agent: no such command (acc --help shows the commands)\n") ==
        "acc there is older than --hosts: acc: agent: no such command (acc --help shows the commands) "
        "(install the "
        "same version on all hosts)");
  CHECK(explained({}, std::string(300, '\x01')).size() < 600);
  CHECK(explained(Exited{1}, "", "This account is not available.\n") ==
        "ssh ended with exit code 1 before acc answered; it printed: This account is not available. (try: "
        "ssh b "
        "true)");
}

TEST_CASE("ssh: what a person has to fix is told apart from a host that is down", "[remote]") {
  const auto kind = [](const std::string& errors) {
    return explain({.host = "b", .status = Exited{255}, .errors = errors}, shell_of({}),
                   std::chrono::seconds(10))
        .kind;
  };
  CHECK(kind("Permission denied (publickey).") == ErrorKind::usage);
  CHECK(kind("connect to host b port 22: No route to host") == ErrorKind::rendezvous);
}

}  // namespace ssh_test
