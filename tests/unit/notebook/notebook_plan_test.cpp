// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/notebook_plan.hpp"

#include "acc/plan/worker_environment.hpp"
#include "support/catch.hpp"
#include "support/comma_locale.hpp"
#include "support/errors.hpp"
#include "support/skip.hpp"

namespace notebook_plan_test {

using namespace acc;
using namespace acc::detail;
using namespace acc::test;

namespace {

using launcher::LaunchPlan;
using Options = NotebookLauncherOptions;

NotebookHost host(std::size_t gpus = 0, Environment environment = {}) {
  return {.environment = std::move(environment),
          .machine = {.gpus = std::vector<Gpu>(gpus)},
          .allowed_cores = [] { return 8; },
          .folder = "/home/me",
          .program = "/usr/bin/python3"};
}

LaunchPlan plan(const Options& options, const NotebookHost& on = host()) {
  return plan_notebook_job(options, on);
}

// Without the words that all of them begin with.
std::string refused(const Options& options) {
  const std::string error = error_of([&] { plan(options); });
  constexpr std::string_view kCommon = "notebook_launcher: ";
  return error.starts_with(kCommon) ? error.substr(kCommon.size()) : error;
}

std::string variable(const LaunchPlan& of, const char* name) {
  return launcher::worker_environment(of, 0, {.round = launcher::expected_round(of)}).get(name);
}

}  // namespace

TEST_CASE("notebook_plan: the options are the job, whatever the environment says", "[notebook]") {
  const NotebookHost steered = host(0, {{"PET_NPROC_PER_NODE", "7"}, {"PET_MAX_RESTARTS", "9"}});
  const LaunchPlan made = plan({.num_processes = 2,
                                .mixed_precision = "bf16",
                                .max_restarts = 3,
                                .log_dir = "/logs",
                                .num_cpu_threads_per_process = 2,
                                .shutdown_timeout = std::chrono::milliseconds(1500)},
                               steered);
  CHECK(made.nproc_per_node == 2);
  CHECK(made.max_restarts == 3);
  CHECK(made.output.log_dir == "/logs");
  CHECK(made.shutdown_timeout == std::chrono::milliseconds(1500));
  CHECK(made.worker_command == std::vector<std::string>{"/usr/bin/python3"});
  CHECK(variable(made, "WORLD_SIZE") == "2");
  CHECK(variable(made, "ACCELERATE_MIXED_PRECISION") == "bf16");
  CHECK(variable(made, "OMP_NUM_THREADS") == "2");
  CHECK(variable(made, "ACCELERATE_USE_CPU") == "True");
  CHECK(made.notes.empty());
}

TEST_CASE("notebook_plan: the program may write numbers with a decimal comma", "[notebook]") {
  const CommaLocale locale;
  if (!locale.is_set()) return skip("locales is missing (apt-get install locales)");
  CHECK(plan({.num_processes = 2, .shutdown_timeout = std::chrono::milliseconds(1500)}).shutdown_timeout ==
        std::chrono::milliseconds(1500));
}

TEST_CASE("notebook_plan: one machine meets at a free port, unless one is named", "[notebook]") {
  CHECK(plan({.num_processes = 2}).master_port == 0);
  CHECK(plan({.num_processes = 2, .use_port = 29501}).master_port == 29501);
}

TEST_CASE("notebook_plan: several nodes meet as with acc launch", "[notebook]") {
  const LaunchPlan made =
      plan({.num_processes = 2, .master_addr = "10.0.0.1", .node_rank = 1, .num_nodes = 3});
  CHECK(made.num_machines == 3);
  CHECK(made.machine_rank == 1);
  CHECK(made.nproc_per_node == 2);
  CHECK(made.rendezvous.endpoint_host == "10.0.0.1");
  CHECK(made.rendezvous.endpoint_port == 29500);
  CHECK(variable(made, "RANK") == "2");
  CHECK(variable(made, "WORLD_SIZE") == "6");
  const LaunchPlan other = plan({.num_processes = 1,
                                 .num_nodes = 2,
                                 .rdzv_backend = "c10d",
                                 .rdzv_endpoint = "head:7",
                                 .rdzv_id = "job7"});
  CHECK(other.rendezvous.backend == launcher::RendezvousKind::c10d);
  CHECK(other.rendezvous.endpoint_port == 7);
  CHECK(other.run_id == "job7");
}

TEST_CASE("notebook_plan: the line says what the training runs on", "[notebook]") {
  CHECK(announcement(plan({.num_processes = 2})) == "Launching training on 2 CPUs.");
  CHECK(announcement(plan({.num_processes = 1})) == "Launching training on CPU.");
  CHECK(announcement(plan({.num_processes = 2}, host(2))) == "Launching training on 2 GPUs.");
  CHECK(announcement(plan({.num_processes = 1}, host(2))) == "Launching training on one GPU.");
  CHECK(announcement(plan({.num_processes = 2, .cpu = true}, host(2))) == "Launching training on 2 CPUs.");
  const NotebookHost forced = host(2, {{"ACCELERATE_USE_CPU", "1"}});
  CHECK(announcement(plan({.num_processes = 2}, forced)) == "Launching training on 2 CPUs.");
}

TEST_CASE("notebook_plan: a wrong option is one error that names it", "[notebook]") {
  CHECK(refused({}) ==
        "num_processes: is missing: how many workers are to be started? (as in {.num_processes = 2})");
  CHECK(refused({.num_processes = 0}) == "num_processes: must be at least 1, not 0");
  CHECK(refused({.num_processes = 2, .num_nodes = 0}) == "num_nodes: must be at least 1, not 0");
  CHECK(refused({.num_processes = 2, .node_rank = 2, .num_nodes = 2}) ==
        "node_rank: is 2, and must be below num_nodes, 2");
  CHECK(refused({.num_processes = 2, .mixed_precision = "fp12"}).starts_with("mixed_precision: "));
  CHECK(refused({.num_processes = 2, .rdzv_backend = "carrier"}).starts_with("rdzv_backend: "));
  CHECK(refused({.num_processes = 2, .max_restarts = -1}).starts_with("max_restarts: "));
  CHECK(refused({.num_processes = 2, .tee = "9"}).starts_with("tee: "));
  CHECK(refused({.num_processes = 2, .num_cpu_threads_per_process = 0}) ==
        "num_cpu_threads_per_process: must be at least 1");
}

}  // namespace notebook_plan_test
