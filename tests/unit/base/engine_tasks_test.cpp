// SPDX-License-Identifier: Apache-2.0
#include "acc/base/engine.hpp"
#include "support/catch.hpp"
#include "support/engine_environments.hpp"

namespace engine_tasks_test {

using acc::Engine;
using acc::EngineFamily;
using acc::EngineValue;
using acc::Environment;
using acc::find_engine;
using acc::test::engine_environment;
using acc::test::with;
using Number = EngineValue<int>;
using Text = EngineValue<std::string>;

TEST_CASE("engine_tasks: Open MPI", "[base]") {
  const Engine engine = find_engine(engine_environment("openmpi_4.1.4.env", 1));
  CHECK(engine.name == "Open MPI");
  CHECK(engine.family == EngineFamily::mpi);
  CHECK(engine.rank == Number{1, "OMPI_COMM_WORLD_RANK"});
  CHECK(engine.size == Number{2, "OMPI_COMM_WORLD_SIZE"});
  CHECK(engine.local_rank->value == 1);
  CHECK(engine.local_size->value == 2);
  CHECK(engine.several_per_node);
  CHECK(engine.num_nodes->value == 1);
  CHECK(engine.master_addr == Text{"127.0.0.1", "OMPI_COMM_WORLD_LOCAL_SIZE=2: all on this machine"});
  CHECK(engine.run_id->value == "609681409");
}

TEST_CASE("engine_tasks: MPICH's Hydra, and MVAPICH", "[base]") {
  const Engine engine = find_engine(engine_environment("mpich_4.0.2_hydra.env", 1));
  CHECK(engine.name == "MPI (Hydra)");
  CHECK(engine.rank->value == 1);
  CHECK(engine.size->value == 2);
  CHECK(engine.local_rank->value == 1);
  CHECK(engine.several_per_node);
  const Engine mvapich = find_engine({{"MV2_COMM_WORLD_RANK", "3"},
                                      {"MV2_COMM_WORLD_SIZE", "4"},
                                      {"MV2_COMM_WORLD_LOCAL_RANK", "0"},
                                      {"MV2_COMM_WORLD_LOCAL_SIZE", "1"}});
  CHECK(mvapich.rank->value == 3);
  CHECK(mvapich.node_rank->value == 3);
  CHECK_FALSE(mvapich.several_per_node);
  CHECK_FALSE(mvapich.master_addr);
}

TEST_CASE("engine_tasks: PMI that Slurm itself serves is Slurm's", "[base]") {
  const Environment task = with(engine_environment("slurm_srun_n2.env", 1),
                                {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_FD", "9"}});
  CHECK(find_engine(task).name == "Slurm");
}

TEST_CASE("engine_tasks: another PMI does not tell which processes share a node", "[base]") {
  const Environment task = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  CHECK(find_engine(task).problem);
  CHECK_FALSE(find_engine(with(task, {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}})).problem);
  CHECK(find_engine(with(task, {{"PMI_SIZE", "1"}}))
            .problem->what.starts_with("PMI_RANK=1 found, but not a PMI_SIZE above it: "));
}

TEST_CASE("engine_tasks: PMIx alone does not tell the number of processes", "[base]") {
  const Environment task = {
      {"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "prterun-node0-17@1"}, {"SLURM_JOB_ID", "7"}};
  CHECK(find_engine(task).name == "PRRTE");
  CHECK(find_engine(task).problem->what.starts_with("PMIX_RANK=1 found, but not the number of processes"));
  const Environment of_slurm = with(engine_environment("slurm_srun_n2.env", 1),
                                    {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "slurm.pmix.2.0"}});
  CHECK(find_engine(of_slurm).name == "Slurm");
}

TEST_CASE("engine_tasks: Flux gives each node as many tasks", "[base]") {
  const auto task = [](const std::string& rank, const std::string& local_rank, const std::string& size) {
    return find_engine({{"FLUX_JOB_ID", "ƒABC"},
                        {"FLUX_JOB_SIZE", size},
                        {"FLUX_JOB_NNODES", "2"},
                        {"FLUX_TASK_RANK", rank},
                        {"FLUX_TASK_LOCAL_ID", local_rank}});
  };
  const Engine engine = task("3", "1", "4");
  CHECK(engine.name == "Flux");
  CHECK(engine.rank->value == 3);
  CHECK(engine.several_per_node);
  CHECK(engine.run_id->value == "ƒABC");
  CHECK(engine.local_size == Number{2, "FLUX_JOB_SIZE=4 among FLUX_JOB_NNODES=2"});
  // The same in the first task of the node.
  CHECK(task("2", "0", "4").local_size == engine.local_size);
  CHECK(task("0", "0", "3").problem);
  CHECK_FALSE(task("1", "0", "2").several_per_node);
}

TEST_CASE("engine_tasks: Cray PALS", "[base]") {
  const Engine engine = find_engine({{"PMI_RANK", "3"},
                                     {"PMI_SIZE", "4"},
                                     {"PMI_LOCAL_RANK", "1"},
                                     {"PMI_LOCAL_SIZE", "2"},
                                     {"PALS_APID", "c0-17"}});
  CHECK(engine.name == "Cray PALS");
  CHECK_FALSE(engine.problem);
  CHECK(engine.rank == Number{3, "PMI_RANK"});
  CHECK(engine.local_rank == Number{1, "PMI_LOCAL_RANK"});
  CHECK(engine.local_size == Number{2, "PMI_LOCAL_SIZE"});
  CHECK(engine.several_per_node);
  CHECK(engine.run_id->value == "c0-17");
}

TEST_CASE("engine_tasks: a local rank that is out of range is a problem", "[base]") {
  const Environment task =
      with(engine_environment("openmpi_4.1.4.env", 1), {{"OMPI_COMM_WORLD_LOCAL_RANK", "2"}});
  REQUIRE(find_engine(task).problem);
  CHECK(find_engine(task).problem->what ==
        "OMPI_COMM_WORLD_LOCAL_RANK=2 found, but not a OMPI_COMM_WORLD_LOCAL_SIZE above it: the rank of this "
        "process in the job of Open MPI is not known");
}

}  // namespace engine_tasks_test
