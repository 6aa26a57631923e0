// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "acc/base/engine_readers.hpp"

namespace acc::engines {
namespace {

/// The variables in which a launcher of tasks tells each its rank; empty: it has none.
struct TaskVariables {
  std::string_view rank, size, local_rank, local_size, num_nodes, run_id;
};

constexpr TaskVariables kOpenMpi = {"OMPI_COMM_WORLD_RANK",       "OMPI_COMM_WORLD_SIZE",
                                    "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                    "OMPI_MCA_orte_num_nodes",    "PMIX_NAMESPACE"};
constexpr TaskVariables kHydra = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "", ""};
constexpr TaskVariables kMvapich = {"MV2_COMM_WORLD_RANK",
                                    "MV2_COMM_WORLD_SIZE",
                                    "MV2_COMM_WORLD_LOCAL_RANK",
                                    "MV2_COMM_WORLD_LOCAL_SIZE",
                                    "",
                                    ""};
constexpr TaskVariables kFlux = {"FLUX_TASK_RANK",  "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "",
                                 "FLUX_JOB_NNODES", "FLUX_JOB_ID"};
constexpr TaskVariables kPals = {"PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE", "", "PALS_APID"};

void read_tasks(const Environment& environment, const TaskVariables& names, Engine& engine) {
  engine.rank = read_number(environment, names.rank);
  engine.size = read_number(environment, names.size, 1);
  engine.local_rank = read_number(environment, names.local_rank);
  engine.local_size = read_number(environment, names.local_size, 1);
  engine.num_nodes = read_number(environment, names.num_nodes, 1);
  if (const auto id = names.run_id.empty() ? std::nullopt : environment.find(names.run_id))
    set_run_id(engine, *id, std::string(names.run_id));
  if (!engine.size || !engine.local_rank || engine.rank->value >= engine.size->value) {
    engine.problem = incomplete(engine, assignment(environment, names.rank),
                                fmt::format("a {} above it with {}", names.size, names.local_rank));
    return;
  }
  if (engine.local_size && engine.local_rank->value >= engine.local_size->value) {
    engine.problem = incomplete(engine, assignment(environment, names.local_rank),
                                fmt::format("a {} above it", names.local_size));
    return;
  }
  const int size = engine.size->value;
  const bool one_node = engine.local_size && engine.local_size->value == size;
  if (one_node) {
    engine.node_rank = {0, engine.local_size->origin};
    engine.num_nodes = {1, engine.local_size->origin};
  }
  const int on_this_node = engine.local_size ? engine.local_size->value : engine.local_rank->value + 1;
  engine.several_per_node = on_this_node > 1 || (engine.num_nodes && size > engine.num_nodes->value);
  if (!engine.several_per_node) {
    engine.node_rank = engine.rank;
    engine.num_nodes = engine.size;
  }
  if (one_node)
    engine.master_addr = {"127.0.0.1", assignment(environment, names.local_size) + ": all on this machine"};
}

}  // namespace

void read_open_mpi(const Environment& environment, Engine& engine) {
  read_tasks(environment, kOpenMpi, engine);
}

void read_hydra(const Environment& environment, Engine& engine) {
  read_tasks(environment, kHydra, engine);
}

void read_mvapich(const Environment& environment, Engine& engine) {
  read_tasks(environment, kMvapich, engine);
}

// Flux tells how many tasks and nodes there are, and gives each node as many tasks where that is possible.
void read_flux(const Environment& environment, Engine& engine) {
  read_tasks(environment, kFlux, engine);
  if (engine.problem || !engine.several_per_node || !engine.num_nodes) return;
  const int nodes = engine.num_nodes->value;
  const int per_node = engine.size->value / nodes;
  if (engine.size->value % nodes != 0 || engine.local_rank->value >= per_node) {
    engine.problem =
        incomplete(engine, assignment(environment, "FLUX_JOB_NNODES"), "as many tasks on each node");
    return;
  }
  const std::string origin = fmt::format("{} among {}", assignment(environment, "FLUX_JOB_SIZE"),
                                         assignment(environment, "FLUX_JOB_NNODES"));
  engine.local_size = {per_node, origin};
  if (nodes == 1) engine.node_rank = {0, origin};
}

// PALS of Cray, where PMI tells which tasks share a node.
void read_pals(const Environment& environment, Engine& engine) {
  read_tasks(environment, kPals, engine);
}

// Another implementation of PMI than those above: it does not tell which tasks share a node.
void read_pmi(const Environment& environment, Engine& engine) {
  engine.size = read_number(environment, "PMI_SIZE", 1);
  engine.rank = read_number(environment, "PMI_RANK");
  if (engine.has_others())
    engine.problem = incomplete(engine, assignment(environment, "PMI_SIZE"), "which processes share a node");
  else if (engine.size && engine.rank && engine.rank->value >= engine.size->value)
    engine.problem = incomplete(engine, assignment(environment, "PMI_RANK"), "a PMI_SIZE above it");
}

// PRRTE's prterun without Open MPI: the number of processes is known to PMIx alone.
void read_pmix(const Environment& environment, Engine& engine) {
  engine.rank = read_number(environment, "PMIX_RANK");
  engine.problem = incomplete(engine, assignment(environment, "PMIX_RANK"), "the number of processes");
}

}  // namespace acc::engines
