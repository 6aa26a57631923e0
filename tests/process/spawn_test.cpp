// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/spawn.hpp"

#include <sys/wait.h>

#include "acc/launch/channel.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/launched.hpp"

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;

namespace {

constexpr rlimit kFiles = {.rlim_cur = 512, .rlim_max = 1024};

ExitStatus run_to_end(const std::vector<std::string>& actions) {
  boost::asio::io_context loop;
  WorkerStart worker = {.program = program("acc-test-stub"), .arguments = {"any name"}};
  worker.arguments.insert(worker.arguments.end(), actions.begin(), actions.end());
  Process process = spawn(loop, worker, {}, kFiles);
  bool ended = false;
  process.async_wait([&](boost::system::error_code error, int) { ended = !error; });
  loop.run();
  REQUIRE(ended);
  return to_exit_status(process.native_exit_code());
}

}  // namespace

TEST_CASE("spawn: tells exit codes from signals", "[process]") {
  CHECK(run_to_end({"exit", "9"}) == ExitStatus(Exited{9}));
  CHECK(run_to_end({"raise", "9"}) == ExitStatus(Signaled{9}));
}

TEST_CASE("spawn: a program that cannot be executed leaves nothing", "[process]") {
  boost::asio::io_context loop;
  const TemporaryFolder folder;
  const std::string missing = (folder.path() / "none").string();
  const auto start = [&](const std::string& file) {
    return error_of([&] { spawn(loop, {.program = file, .arguments = {file}}, {}, kFiles); });
  };
  CHECK(start(missing) == missing + ": cannot be started: No such file or directory");
  const auto text = folder.write("script", "echo no first line\n");
  std::filesystem::permissions(text, std::filesystem::perms::owner_all);
  CHECK(start(text.string()).find("Exec format error (a script needs") != std::string::npos);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("spawn: destroying a worker kills it", "[process]") {
  boost::asio::io_context loop;
  Telephone phone;
  std::optional<Process> process = spawn(
      loop,
      {.program = program("acc-test-stub"), .arguments = {"stub", "tell", phone.path(), "here", "pause"}}, {},
      kFiles);
  const std::vector<Descriptor> watched = phone.next_processes(1);
  process.reset();
  CHECK(all_gone(watched));
}
