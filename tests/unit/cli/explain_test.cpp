// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/explain.hpp"

#include "acc/plan/resolve.hpp"
#include "support/catch.hpp"
#include "support/inputs.hpp"

namespace explain_test {

using acc::launcher::explain_json;
using acc::launcher::LaunchPlan;
using acc::launcher::resolve;
using acc::launcher::Value;
using acc::test::inputs;

TEST_CASE("explain: json has the fields of schema 1, each setting with its origin", "[cli]") {
  acc::launcher::LaunchInputs launch_inputs = inputs({"--num_processes", "2", "train.py", "--lr", "0.1"});
  launch_inputs.file = acc::test::file({{"distributed_type", "MULTI_CPU"}, {"mixed_precision", "bf16"}});
  const Value json = explain_json(resolve(launch_inputs));
  CHECK(json["schema"] == 1);
  CHECK(json["launcher"] == "simple");
  CHECK(json["settings"]["num_processes"] == Value{{"value", 2}, {"origin", "--num_processes"}});
  CHECK(json["settings"]["mixed_precision"] == Value{{"value", "bf16"}, {"origin", "job.yaml:2"}});
  CHECK(json["worker_command"] == Value{"/usr/bin/python3", "train.py", "--lr", "0.1"});
  CHECK(json["env"]["ACCELERATE_MIXED_PRECISION"] == "bf16");
  CHECK(json["env"]["MASTER_PORT"] == "<free port>");
  REQUIRE(json["workers"].size() == 2);
  CHECK(json["workers"][1]["rank"] == 1);
  CHECK(json["workers"][1]["env"]["RANK"] == "1");
  CHECK_FALSE(json["workers"][1]["env"].contains("ACCELERATE_MIXED_PRECISION"));
}

TEST_CASE("explain: text shows what would run, and what prevents it", "[cli]") {
  const std::string text = explain_text(resolve(inputs({"--num_processes", "2", "it's missing.py"})));
  CHECK(text.find("2 workers of 1 machine, launcher simple") != std::string::npos);
  CHECK(text.find("num_processes") != std::string::npos);
  CHECK(text.find("--num_processes\n") != std::string::npos);
  CHECK(text.find("/usr/bin/python3 'it'\\''s missing.py'") != std::string::npos);
  CHECK(text.find("RANK=0\n") != std::string::npos);
  CHECK(text.find("note: cannot be started here: it's missing.py: no such program") != std::string::npos);
}

TEST_CASE("explain: the CPUs of bound workers are shown", "[cli]") {
  LaunchPlan plan = resolve(inputs({"--num_processes", "2", "train.py"}));
  CHECK_FALSE(explain_json(plan)["workers"][0].contains("cpus"));
  plan.cpus_of_rank = {{.cpus = {0, 1}, .numa_nodes = {0}}, {.cpus = {2, 4}, .numa_nodes = {1, 2}}};
  const Value worker = explain_json(plan)["workers"][1];
  CHECK(worker["cpus"] == "2,4");
  CHECK(worker["numa"] == Value{1, 2});
  CHECK(explain_text(plan).find("  worker 1: 2,4 (NUMA 1, 2)\n") != std::string::npos);
}

TEST_CASE("explain: says where acc starts more processes than accelerate would", "[cli]") {
  const auto has_note = [](const std::vector<std::string>& words) {
    return explain_text(resolve(inputs(words)))
               .find("accelerate launch starts one process where acc starts these 2") != std::string::npos;
  };
  CHECK(has_note({"--cpu", "--num_processes", "2", "train.py"}));
  CHECK_FALSE(has_note({"--cpu", "train.py"}));
}

TEST_CASE("explain: lists what was assumed without flags and variables", "[cli]") {
  const auto assumed = [](const std::vector<std::string>& words) {
    return acc::launcher::assumed_text(resolve(inputs(words, acc::launcher::Dialect::launch, 4)));
  };
  CHECK(assumed({"train.py"}) == "4 processes, 1 machine, mixed_precision no");
  CHECK(assumed({"--nproc-per-node", "2", "train.py"}) == "1 machine, mixed_precision no");
  CHECK(assumed({"--nproc-per-node", "2", "--mixed_precision", "no", "train.py"}).empty());
  CHECK(assumed({"--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no", "train.py"})
            .empty());
}

TEST_CASE("explain: a wrapped rank is shown with its own command, the attached one with its terminal",
          "[cli]") {
  acc::launcher::LaunchInputs launch_inputs = inputs(
      {"--nproc-per-node", "3", "--wrap-rank", "1:gdb -ex 'break main' --args", "--attach", "2", "./a.out"},
      acc::launcher::Dialect::torchrun);
  launch_inputs.file_kind = acc::test::files({{"./a.out", acc::launcher::FileKind::executable},
                                              {"/usr/bin/gdb", acc::launcher::FileKind::executable}});
  const LaunchPlan plan = resolve(launch_inputs);
  const Value workers = explain_json(plan)["workers"];
  CHECK(workers[1]["command"] == Value{"gdb", "-ex", "break main", "--args", "./a.out"});
  CHECK_FALSE(workers[0].contains("command"));
  CHECK(explain_text(plan).find("rank 1 runs:\n  gdb -ex 'break main' --args ./a.out\n") !=
        std::string::npos);
  CHECK(workers[2]["terminal"] == true);
  CHECK_FALSE(workers[0].contains("terminal"));
}

}  // namespace explain_test
