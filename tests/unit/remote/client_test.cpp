// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/client.hpp"

#include "acc/base/error.hpp"
#include "acc/remote/frames.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/shell_script.hpp"

namespace client_test {

using acc::Environment;
using acc::launcher::encode;
using acc::launcher::FrameKind;
using acc::launcher::RemoteJob;
using acc::launcher::run_on_hosts;
using acc::test::command_that_writes;
using acc::test::error_of;

namespace {

// A host that is ready, and then ends as it is told; it is a shell script in the place of ssh.
std::string ready_host(const std::string& then) {
  const acc::launcher::HostReady ready = {.host_name = "n", .addresses = {"10.0.0.1"}, .port = 23456};
  return command_that_writes(acc::launcher::greeting() + encode(FrameKind::ready, to_json(ready))) + "; " +
         then;
}

RemoteJob job_on(const std::map<std::string, std::string>& scripts,
                 std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  RemoteJob job = {
      .flag = "--hosts", .environment = Environment::of_process(), .run_id = "run", .host_timeout = limit};
  std::string cases = "case $0 in ";
  for (const auto& [name, script] : scripts) {
    job.hosts.push_back({.name = name, .origin = "--hosts"});
    cases += name + ") " + script + ";; ";
  }
  job.spec.version = "acc 1";
  job.shell.words = {"sh", "-c", cases + "esac"};
  return job;
}

}  // namespace

TEST_CASE("client: hosts that cannot start are named together, when all have answered", "[remote]") {
  const acc::launcher::Refusal refusal = {acc::ErrorKind::config, {{"no such file", "train.py", ""}}};
  const std::string refuses =
      command_that_writes(acc::launcher::greeting() + encode(FrameKind::refused, to_json(refusal)));
  const RemoteJob job = job_on({{"a", refuses},
                                {"b", ready_host("exec cat >/dev/null")},
                                {"c", refuses},
                                {"d", "echo 'Permission denied (publickey).' >&2; exit 255"}});
  CHECK(error_of([&] { run_on_hosts(job); }) ==
        "a, c: train.py: no such file\n"
        "d: ssh was not let in: Permission denied (publickey). (a key without a passphrase, or an agent that "
        "has it, "
        "must be accepted there: ssh-copy-id d)");
}

TEST_CASE("client: a host that is silent is named in time", "[remote]") {
  const RemoteJob job = job_on({{"a", "exec sleep 1000"}}, std::chrono::milliseconds(100));
  CHECK(error_of([&] { run_on_hosts(job); }) == "a: no answer within 0.1 s (is it up? try: sh a true)");
}

}  // namespace client_test
