// SPDX-License-Identifier: Apache-2.0
#include "acc/base/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "acc/base/engine_readers.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

using namespace engines;

// FNV-1a: all nodes of a run find the same port, and two runs on one node rarely do.
int port_of(std::string_view run_id) {
  std::uint32_t hash = 2166136261U;
  for (const char c : run_id) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return 20000 + static_cast<int>(hash % 10000);
}

constexpr std::string_view kConvention = "env://";

/// How an engine is recognized, and how its variables are read.
struct EngineRow {
  std::string_view name;
  EngineFamily family;
  /// All of these variables are set; empty ones are ignored.
  std::array<std::string_view, 3> marks;
  /// Holds the job's id; empty: none does.
  std::string_view job = {};
  void (*read)(const Environment&, Engine&) = nullptr;
};

// The first match wins. What runs inside of something else comes before it: an mpirun inside a step of Slurm
// leaves the variables of that step to its tasks, and on some nodes not even those of the right step.
constexpr std::array kEngines = {
    EngineRow{"Open MPI", EngineFamily::mpi, {"OMPI_COMM_WORLD_RANK"}, "", read_open_mpi},
    EngineRow{"MPI (Hydra)", EngineFamily::mpi, {"PMI_RANK", "MPI_LOCALRANKID"}, "", read_hydra},
    EngineRow{"MVAPICH", EngineFamily::mpi, {"MV2_COMM_WORLD_RANK"}, "", read_mvapich},
    EngineRow{"Flux", EngineFamily::other, {"FLUX_JOB_ID", "FLUX_TASK_RANK"}, "FLUX_JOB_ID", read_flux},
    EngineRow{"PRRTE", EngineFamily::mpi, {"PMIX_RANK", "PMIX_NAMESPACE"}, "", read_pmix},
    EngineRow{"SkyPilot", EngineFamily::other, {"SKYPILOT_NODE_RANK"}, "", read_sky_pilot},
    EngineRow{"SageMaker",
              EngineFamily::other,
              {"SM_HOSTS", "SM_CURRENT_HOST"},
              "TRAINING_JOB_NAME",
              read_sage_maker},
    EngineRow{"AWS Batch",
              EngineFamily::other,
              {"AWS_BATCH_JOB_NUM_NODES", "AWS_BATCH_JOB_NODE_INDEX"},
              "AWS_BATCH_JOB_ID",
              read_aws_batch},
    EngineRow{"Slurm",
              EngineFamily::slurm,
              {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID"},
              "SLURM_JOB_ID",
              read_slurm_step},
    EngineRow{"Cray PALS", EngineFamily::mpi, {"PMI_RANK", "PMI_LOCAL_RANK"}, "", read_pals},
    EngineRow{"MPI (PMI)", EngineFamily::mpi, {"PMI_RANK", "PMI_SIZE"}, "", read_pmi},
    EngineRow{"LeaderWorkerSet", EngineFamily::kubernetes, {"LWS_WORKER_INDEX"}, "", read_worker_set},
    EngineRow{"PyTorchJob",
              EngineFamily::kubernetes,
              {"KUBERNETES_SERVICE_HOST", "RANK", "WORLD_SIZE"},
              "",
              read_pytorch_variables},
    EngineRow{"Volcano", EngineFamily::kubernetes, {"VC_TASK_INDEX"}, "", read_volcano},
    EngineRow{"Kubernetes Job",
              EngineFamily::kubernetes,
              {"KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"},
              "",
              read_indexed_job},
    EngineRow{"Slurm", EngineFamily::slurm, {"SLURM_JOB_ID"}, "SLURM_JOB_ID", read_slurm_allocation},
    EngineRow{"PBS", EngineFamily::other, {"PBS_JOBID"}, "PBS_JOBID", read_pbs},
    EngineRow{"LSF", EngineFamily::other, {"LSB_JOBID"}, "LSB_JOBID", read_lsf},
    EngineRow{"Grid Engine", EngineFamily::other, {"SGE_TASK_ID"}, "JOB_ID", read_grid_engine},
    EngineRow{"Flux", EngineFamily::other, {"FLUX_JOB_ID"}, "FLUX_JOB_ID"},
    EngineRow{"SageMaker", EngineFamily::other, {"TRAINING_JOB_NAME"}, "TRAINING_JOB_NAME"},
    EngineRow{"Kubernetes", EngineFamily::kubernetes, {"KUBERNETES_SERVICE_HOST"}},
    EngineRow{kConvention, EngineFamily::other, {"RANK", "WORLD_SIZE"}, "", read_pytorch_variables},
};

// The shell that salloc opens on the first node is a step with this number (SLURM_INTERACTIVE_STEP of
// Slurm's slurm.h).
bool is_interactive_step(const Environment& environment) {
  return environment.get("SLURM_STEP_ID") == "4294967290";
}

// `srun --mpi=pmix` names its jobs so.
bool is_pmix_of_slurm(const Environment& environment) {
  return environment.get("PMIX_NAMESPACE").starts_with("slurm.");
}

// RANK and WORLD_SIZE are a node's where nothing says that they are a worker's: each launcher gives its
// workers a LOCAL_RANK. Where torchrun's own variables are there, they say it. Templates of pods and scripts
// leave WORLD_SIZE empty.
bool counts_nodes(const Environment& environment) {
  const std::string size = environment.get("WORLD_SIZE");
  return environment.contains("MASTER_ADDR") && !size.empty() && size != "1" &&
         !environment.contains("LOCAL_RANK") && !environment.contains("PET_NNODES") &&
         !environment.contains("PET_RDZV_ENDPOINT");
}

bool matches(const EngineRow& row, const Environment& environment) {
  if (row.read == read_pytorch_variables && !counts_nodes(environment)) return false;
  if (row.read == read_pmix && is_pmix_of_slurm(environment)) return false;
  if (row.read == read_slurm_step && is_interactive_step(environment)) return false;
  return std::ranges::all_of(
      row.marks, [&](std::string_view name) { return name.empty() || environment.contains(name); });
}

const EngineRow* find_row(const Environment& environment, std::optional<EngineFamily> family) {
  const auto* found = std::ranges::find_if(kEngines, [&](const EngineRow& row) {
    return (!family || row.family == *family) && matches(row, environment);
  });
  return found == kEngines.end() ? nullptr : found;
}

Engine named_by(const EngineRow& row, const Environment& environment) {
  Engine engine;
  engine.family = row.family;
  engine.name = row.name;
  if (!row.job.empty()) engine.job = environment.get(row.job);
  return engine;
}

std::optional<EngineFamily> family_of(std::string_view choice) {
  if (choice == "slurm") return EngineFamily::slurm;
  if (choice == "mpi") return EngineFamily::mpi;
  if (choice == "k8s") return EngineFamily::kubernetes;
  if (choice == "auto") return std::nullopt;
  throw Error({.what = fmt::format("'{}' is not an engine", shorten(choice)),
               .where = "ACC_ENGINE",
               .hint = "auto, slurm, mpi, k8s or none"});
}

// The variables of which one shows that an engine of the family is there.
std::string marks_of(EngineFamily family) {
  std::vector<std::string> marks;
  for (const EngineRow& row : kEngines) {
    const std::string mark(row.marks.front());
    if (row.family == family && std::ranges::find(marks, mark) == marks.end()) marks.push_back(mark);
  }
  return join(marks, ", ");
}

}  // namespace

void set_run_id(Engine& engine, const std::string& id, const std::string& origin) {
  engine.run_id = {id, origin};
  engine.master_port = {port_of(id), origin};
}

Engine find_engine(const Environment& environment, std::string_view choice) {
  if (choice == "none") return {};
  const auto family = family_of(choice);
  // torchrun and acc are the innermost engine of their workers.
  if (!family && environment.contains("TORCHELASTIC_RUN_ID")) return {};
  const EngineRow* row = find_row(environment, family);
  if (row == nullptr && family) {
    throw Error({.what = fmt::format("no engine '{}' started this process: none of {} is set", choice,
                                     marks_of(*family)),
                 .hint = "drop --engine and ACC_ENGINE"});
  }
  if (row == nullptr) return {};
  Engine engine = named_by(*row, environment);
  if (row->read != nullptr) row->read(environment, engine);
  return engine;
}

std::string full_name(const Engine& engine) {
  return engine.job.empty() ? engine.name : fmt::format("{} (job {})", engine.name, shorten(engine.job));
}

std::string engine_name(const Environment& environment) {
  const EngineRow* row = find_row(environment, std::nullopt);
  return row == nullptr ? std::string() : full_name(named_by(*row, environment));
}

namespace {

struct StopRow {
  std::string_view engine;
  /// Seconds between SIGTERM and SIGKILL by default; negative: it sends no SIGKILL.
  int grace;
  std::string_view setting;
};

constexpr std::string_view kOpenMpiSetting = "odls_base_sigkill_timeout";
constexpr std::array kStops = {
    StopRow{"Open MPI", 1, kOpenMpiSetting},
    StopRow{"PRRTE", 1, kOpenMpiSetting},
    StopRow{"MPI (Hydra)", -1, ""},
    StopRow{"Slurm", 30, "KillWait of slurm.conf"},
    StopRow{"Flux", 5, "kill-timeout of flux-config-exec"},
    StopRow{"LSF", 10, "JOB_TERMINATE_INTERVAL of lsb.params"},
    StopRow{"PBS", 10, "kill_delay of the queue"},
};
constexpr StopRow kPodStop = {"", 30, "terminationGracePeriodSeconds of the pod"};

// Processes of mpirun see what it was given by --mca; PRRTE has a prefix of its own.
Number open_mpi_setting(const Environment& environment) {
  for (const std::string_view prefix : {"OMPI_MCA_", "PRTE_MCA_"}) {
    if (Number seconds = read_number(environment, fmt::format("{}{}", prefix, kOpenMpiSetting)))
      return seconds;
  }
  return std::nullopt;
}

}  // namespace

std::optional<EngineStop> engine_stop(const Environment& environment) {
  const EngineRow* row = find_row(environment, std::nullopt);
  if (row == nullptr || row->name == kConvention) return std::nullopt;
  EngineStop stop = {.engine = std::string(row->name)};
  const auto* found = std::ranges::find(kStops, row->name, &StopRow::engine);
  const bool is_pod = row->family == EngineFamily::kubernetes;
  if (found == kStops.end() && !is_pod) return stop;
  const StopRow& known = is_pod ? kPodStop : *found;
  stop.setting = known.setting;
  if (known.grace >= 0) stop.grace = std::chrono::seconds(known.grace);
  if (known.setting != kOpenMpiSetting) return stop;
  if (const Number given = open_mpi_setting(environment)) stop.grace = std::chrono::seconds(given->value);
  return stop;
}

bool sees_one_device(const Environment& environment) {
  return devices_of_mask(environment.get("CUDA_VISIBLE_DEVICES")).size() == 1;
}

std::string first_pod(std::string_view full_host_name) {
  const std::size_t dot = full_host_name.find('.');
  const std::size_t dash = full_host_name.substr(0, dot).rfind('-');
  if (dot == std::string_view::npos || dash == std::string_view::npos) return {};
  return fmt::format("{}-0{}", full_host_name.substr(0, dash), full_host_name.substr(dot));
}

}  // namespace acc
