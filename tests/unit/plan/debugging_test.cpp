// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/debugging.hpp"

#include "acc/plan/resolve.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace debugging_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
using Words = std::vector<std::string>;

namespace {

LaunchPlan plan_of(Words words) {
  words.insert(words.begin(), {"--nproc-per-node", "3"});
  words.emplace_back("./a.out");
  LaunchInputs launch_inputs = inputs(words, Dialect::torchrun);
  launch_inputs.file_kind =
      files({{"./a.out", FileKind::executable}, {"/usr/bin/gdb", FileKind::executable}});
  return resolve(launch_inputs);
}

std::string refusal(const Words& words) {
  return error_of([&] { plan_of(words); });
}

}  // namespace

TEST_CASE("debugging: a wrap precedes the program of one rank", "[plan]") {
  const LaunchPlan plan = plan_of({"--wrap-rank", "1:gdb -ex 'break main' --args"});
  CHECK(wrapped_command(plan, 1, 1) == Words{"gdb", "-ex", "break main", "--args", "./a.out"});
  CHECK(worker_program(plan, 1) == "/usr/bin/gdb");
  CHECK(wrapped_command(plan, 0, 0) == Words{"./a.out"});
  CHECK(worker_program(plan, 0) == "./a.out");
}

TEST_CASE("debugging: a rank's own wrap takes precedence over that of all, and the flag may be repeated",
          "[plan]") {
  const LaunchPlan plan = plan_of({"--wrap-rank", "2:gdb own", "--wrap_rank=all:gdb every"});
  CHECK(wrapped_command(plan, 2, 2) == Words{"gdb", "own", "./a.out"});
  CHECK(wrapped_command(plan, 0, 0) == Words{"gdb", "every", "./a.out"});
}

TEST_CASE("debugging: an invalid wrap is refused", "[plan]") {
  CHECK(refusal({"--wrap-rank", "gdb --args"}) ==
        "--wrap-rank: 'gdb --args' is not RANK:WORDS (as in '0:gdb --args' or 'all:valgrind')");
  CHECK(refusal({"--wrap-rank", "0: "}) == "--wrap-rank: '0: ' names no program (as in '0:gdb --args')");
  CHECK(refusal({"--wrap-rank", "0:gdb 'x"}) == "--wrap-rank: 'gdb 'x' has a ' without its end");
  CHECK(refusal({"--wrap-rank", "all:gdb", "--wrap-rank", "7:gdb"}) ==
        "--wrap-rank: there is no rank 7: the job has 3 workers");
  REQUIRE(plan_of({"--wrap-rank", "0:valgrind"}).problems.size() == 1);
  CHECK(plan_of({"--wrap-rank", "0:valgrind"}).problems[0].where == "valgrind");
}

TEST_CASE("debugging: the attached rank keeps the terminal for itself", "[plan]") {
  const LaunchPlan plan = plan_of({"--attach", "1", "--redirects", "0:1", "--hang-timeout", "5"});
  CHECK(plan.attach == 1);
  CHECK(plan.output.redirects.streams_of(0) == Streams::both);
  CHECK(plan.output.redirects.streams_of(1) == Streams::none);
  CHECK(plan.output.redirects.streams_of(2) == Streams::both);
  CHECK(plan.hang.timeout.count() == 0);
  REQUIRE_FALSE(plan.notes.empty());
  CHECK(plan.notes.back() == "with --attach hang detection is off");
  CHECK(refusal({"--attach", "1", "--pid-namespace"}) ==
        "--pid-namespace: a process in a pid namespace cannot get the terminal (leave out --attach)");
  CHECK(refusal({"--attach", "3"}) == "--attach: there is no rank 3: the job has 3 workers");
}

TEST_CASE("debugging: the ranks of another launcher's workers are refused", "[plan]") {
  const auto refusal_with = [](const Words& flags) {
    Words words = {"--cpu", "--num_processes", "4", "--mpirun_hostfile", "/h"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.emplace_back("train.py");
    return error_of([&] { resolve(inputs(words, Dialect::launch)); });
  };
  CHECK(refusal_with({"--wrap-rank", "3:gdb --args"}) ==
        "--wrap-rank: mpirun starts the workers, and acc can wrap none of them");
  CHECK(refusal_with({"--wrap-rank", "all:gdb --args"}) ==
        "--wrap-rank: mpirun starts the workers, and acc can wrap none of them");
  CHECK(refusal_with({"--attach", "3"}) ==
        "--attach: mpirun starts the workers, and none of them can get the terminal");
}

TEST_CASE("debugging: another machine's rank changes nothing here", "[plan]") {
  const LaunchPlan plan = plan_of(
      {"--nnodes", "2", "--node-rank", "1", "--master-addr", "a", "--master-port", "1", "--attach", "0"});
  CHECK_FALSE(plan.attach);
  CHECK(plan.output.redirects == StreamMap{});
}

TEST_CASE("debugging: where the nodes agree on ranks later, none can be attached", "[plan]") {
  const std::string reason =
      "--attach: which node has a rank is known only when the nodes have met (use the static rendezvous, "
      "with a "
      "--node-rank for each node)";
  CHECK(refusal({"--attach", "3", "--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "a:1"}) ==
        reason);
  CHECK(refusal({"--attach", "0", "--nnodes", "1:2", "--rdzv-backend", "etcd", "--rdzv-endpoint", "a:1"}) ==
        reason);
  CHECK(plan_of({"--attach", "0", "--standalone"}).attach == 0);
}

TEST_CASE("debugging: words are split as a shell does", "[plan]") {
  CHECK(split_words(" a  'b c' \"d 'e'\" f\\ g '' ", "") == Words{"a", "b c", "d 'e'", "f g", ""});
  CHECK(split_words("a\"b c\"d", "") == Words{"ab cd"});
  CHECK(split_words("", "").empty());
}

}  // namespace debugging_test
