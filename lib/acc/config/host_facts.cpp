// SPDX-License-Identifier: Apache-2.0
#include "acc/config/host_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "acc/base/text.hpp"

namespace acc::launcher {

std::vector<NumaNode> numa_nodes(const std::filesystem::path& root) {
  std::vector<NumaNode> nodes;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with("node")) continue;
    const auto number = parse_integer(name.substr(4));
    std::ifstream in(entry->path() / "cpulist");
    std::string cpus;
    if (number && std::getline(in, cpus)) nodes.push_back({static_cast<int>(*number), cpus});
  }
  std::ranges::sort(nodes, {}, &NumaNode::number);
  return nodes;
}

std::string scheduler_name(const Environment& environment) {
  struct Scheduler {
    std::string_view name, variable;
    bool shows_job;
  };
  constexpr std::array kSchedulers = {
      Scheduler{"Slurm", "SLURM_JOB_ID", true},
      Scheduler{"PBS", "PBS_JOBID", true},
      Scheduler{"LSF", "LSB_JOBID", true},
      Scheduler{"Grid Engine", "SGE_TASK_ID", false},
      Scheduler{"Flux", "FLUX_JOB_ID", true},
      Scheduler{"SageMaker", "TRAINING_JOB_NAME", true},
      Scheduler{"Open MPI", "OMPI_COMM_WORLD_SIZE", false},
      Scheduler{"MPI (PMI)", "PMI_SIZE", false},
      Scheduler{"Kubernetes", "KUBERNETES_SERVICE_HOST", false},
  };
  for (const Scheduler& scheduler : kSchedulers) {
    const auto value = environment.find(scheduler.variable);
    if (value)
      return scheduler.shows_job ? fmt::format("{} (job {})", scheduler.name, *value)
                                 : std::string(scheduler.name);
  }
  return "none found";
}

}  // namespace acc::launcher
