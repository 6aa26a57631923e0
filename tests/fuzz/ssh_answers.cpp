// SPDX-License-Identifier: Apache-2.0
// What ssh and a host say in place of acc's greeting: one line that a person can act on.
#include <algorithm>

#include "acc/remote/ssh.hpp"
#include "fuzz/promise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  fuzz::Choices choices(text);
  const std::size_t code = choices.below(256);
  const std::size_t end = std::min(text.find("\n%\n"), text.size());
  acc::launcher::FailedConnection failed = {
      .host = "b", .errors = std::string(text.substr(0, end)), .output = std::string(text.substr(end))};
  if (code % 7 != 0) failed.status = acc::launcher::Exited{static_cast<int>(code)};
  const acc::launcher::RemoteShell shell =
      acc::launcher::remote_shell({}, "/opt/acc", {.host_name = "here"}, std::chrono::seconds(20));
  const auto explained = explain(failed, shell, std::chrono::seconds(10));
  fuzz::require_clear(acc::Error(explained.kind, {explained.problem}));
  fuzz::require(to_string(explained.problem).find('\n') == std::string::npos, "it is one line",
                to_string(explained.problem));
  acc::launcher::ended_by_silence(failed.errors);
  const std::string host = failed.errors.substr(0, failed.errors.find('\n'));
  const std::vector<std::string> command = agent_command(shell, host);
  fuzz::require(
      command == std::vector<std::string>{"/opt/acc", "agent"} || std::ranges::count(command, host) > 0,
      "a host is one word of the command", host);
  return 0;
}
