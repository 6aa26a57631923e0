// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/ssh.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "acc/base/printable.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

constexpr int kAliveMessages = 4;
constexpr int kNotFound = 127;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// For people, however long it is.
std::string last_line(std::string_view text) {
  constexpr std::size_t kMaxBytes = 500;
  text = trim(text);
  return shorten(printable(trim(text.substr(text.rfind('\n') + 1))), kMaxBytes);
}

struct KnownError {
  std::string_view text;
  ErrorKind kind;
  std::string_view what;
  std::string_view hint;
};

// Parts of ssh's messages.
constexpr KnownError kKnown[] = {
    {"Could not resolve hostname", ErrorKind::usage, "ssh knows no host of this name",
     "is it spelled right? ~/.ssh/config may give it a HostName"},
    {"Permission denied", ErrorKind::usage, "ssh was not let in",
     "a key without a passphrase, or an agent that has it, must be accepted there: ssh-copy-id {}"},
    {"Host key verification failed", ErrorKind::usage, "ssh does not know the host's key",
     "connect once by hand: ssh {}"},
    {"Connection refused", ErrorKind::rendezvous, "no ssh server answers",
     "does sshd run there, and on that port?"},
    {"timed out", ErrorKind::rendezvous, "the host does not answer", "is it up, and its name the right one?"},
    {"No route to host", ErrorKind::rendezvous, "the host cannot be reached", "is it up?"},
};

// What ssh says when the other side closes a connection before the key exchange. Older versions name the
// protocol.
constexpr std::string_view kClosedAtOnce[] = {"kex_exchange_identification: ",
                                              "ssh_exchange_identification: "};
constexpr std::string_view kClosed[] = {"Connection closed by ", "Connection reset by "};

std::string said(const std::string& errors) {
  const std::string line = last_line(errors);
  return line.empty() ? "" : fmt::format(": {}", line);
}

}  // namespace

RemoteShell remote_shell(const Environment& environment, const std::filesystem::path& acc,
                         const OwnNames& names, std::chrono::milliseconds silence) {
  RemoteShell shell = {.words = split_words(environment.get("ACC_RSH", "ssh")), .acc = acc, .names = names};
  if (shell.words.empty()) shell.words = {"ssh"};
  if (std::filesystem::path(shell.words.front()).filename() != "ssh") return shell;
  const auto interval =
      std::max<std::int64_t>(1, (silence.count() / 1000 + kAliveMessages - 1) / kAliveMessages);
  for (const std::string& option :
       {std::string("BatchMode=yes"), fmt::format("ServerAliveInterval={}", interval),
        fmt::format("ServerAliveCountMax={}", kAliveMessages), std::string("ControlMaster=no")}) {
    shell.words.insert(shell.words.end(), {"-o", option});
  }
  shell.words.insert(shell.words.end(), {"-T", "-x"});
  return shell;
}

bool is_this_machine(const std::string& host, const OwnNames& names) {
  return host == "localhost" || host == names.host_name;
}

std::vector<std::string> agent_command(const RemoteShell& shell, const std::string& host) {
  if (is_this_machine(host, shell.names)) return {shell.acc.string(), "agent"};
  std::vector<std::string> command = shell.words;
  command.push_back(host);
  // The login shell there may be any; PATH is short when no one logs in.
  command.push_back(
      fmt::format(R"(sh -c 'if test -x "$0"; then exec "$0" agent; else exec acc agent; fi' {})",
                  in_quotes(shell.acc.string())));
  return command;
}

bool refuses_login_for_now(const std::string& errors) {
  bool closed_at_once = false;
  for (const std::string& text : split(errors, '\n')) {
    const std::string_view line = trim(text);
    const auto begins_line = [&](std::string_view words) { return line.starts_with(words); };
    if (std::ranges::any_of(kClosedAtOnce, begins_line)) {
      closed_at_once = true;
    } else if (!line.empty() && std::ranges::none_of(kClosed, begins_line)) {
      return false;
    }
  }
  return closed_at_once;
}

bool ended_by_silence(const std::string& errors) {
  return has(errors, "not responding");
}

ConnectionProblem explain(const FailedConnection& failed, const RemoteShell& shell,
                          std::chrono::milliseconds limit) {
  const std::string tool = is_this_machine(failed.host, shell.names) ? "acc agent" : shell.words.front();
  const auto problem = [&](ErrorKind kind, std::string what, std::string hint) {
    return ConnectionProblem{kind, {.what = std::move(what), .hint = std::move(hint)}};
  };
  for (const KnownError& known : kKnown) {
    if (!has(failed.errors, known.text)) continue;
    return problem(known.kind, fmt::format("{}{}", known.what, said(failed.errors)),
                   fmt::format(fmt::runtime(known.hint), failed.host));
  }
  if (refuses_login_for_now(failed.errors)) {
    return problem(
        ErrorKind::rendezvous, "the ssh server, or a jump host, closes new connections" + said(failed.errors),
        fmt::format("MaxStartups there limits the logins at a time; or is this machine blocked? try: {} "
                    "{} true",
                    tool, failed.host));
  }
  if (!failed.status) {
    return problem(ErrorKind::rendezvous,
                   fmt::format("no answer within {}{}", seconds_text(limit), said(failed.errors)),
                   fmt::format("is it up? try: {} {} true", tool, failed.host));
  }
  const bool missing = *failed.status == ExitStatus(Exited{kNotFound});
  if (missing) {
    return problem(ErrorKind::usage,
                   fmt::format("acc is missing there: neither {} nor acc on PATH{}", shell.acc.string(),
                               said(failed.errors)),
                   "install it at the same path, or on the PATH of a shell that nobody logs in to");
  }
  if (has(failed.errors, "no such command")) {
    return problem(ErrorKind::usage, "acc there is older than --hosts" + said(failed.errors),
                   "install the same version on all hosts");
  }
  const std::string output = last_line(failed.output);
  return problem(
      ErrorKind::rendezvous,
      fmt::format("{} ended with {} before acc answered{}{}", tool, to_string(*failed.status),
                  said(failed.errors), output.empty() ? "" : fmt::format("; it printed: {}", output)),
      fmt::format("try: {} {} true", tool, failed.host));
}

}  // namespace acc::launcher
