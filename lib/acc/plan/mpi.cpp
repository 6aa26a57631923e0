// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/mpi.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"

namespace acc::launcher {

bool uses_mpi(const JobShape& shape, const Settings& settings) {
  return shape.launcher == "simple" && settings.given("mpirun_hostfile");
}

OtherLauncher mpi_command(const LaunchInputs& inputs, const JobShape& shape, const Settings& settings,
                          const std::vector<std::string>& worker) {
  OtherLauncher mpi = find_launcher({"mpirun", "mpiexec"}, inputs);
  const std::string per_node = fmt::to_string(shape.nproc_per_node);
  const std::string total = fmt::to_string(shape.nproc_per_node * shape.num_machines);
  const std::string hostfile = settings.text("mpirun_hostfile");
  const std::vector<std::string> words =
      inputs.open_mpi ? std::vector<std::string>{"--hostfile", hostfile, "--npernode", per_node,
                                                 "-n",         total,    "--bind-to",  "socket"}
                      : std::vector<std::string>{"-f", hostfile, "-ppn", per_node, "-n", total};
  mpi.command.insert(mpi.command.end(), words.begin(), words.end());
  mpi.command.insert(mpi.command.end(), worker.begin(), worker.end());
  return mpi;
}

Environment mpi_environment(const JobShape& shape, const Settings& settings) {
  const bool has_place = settings.given("main_process_ip") && settings.given("main_process_port");
  if (shape.num_machines > 1 && !has_place) {
    throw Error(
        {.what = fmt::format("{} machines need the address and port of machine 0", shape.num_machines),
         .where = settings.origin("num_machines"),
         .hint = "--main_process_ip and --main_process_port"});
  }
  if (shape.num_machines * shape.nproc_per_node == 1) return {};
  // The processes of MPI meet at a port that all of them know beforehand.
  Environment environment{{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  if (settings.given("main_process_ip")) environment.set("MASTER_ADDR", settings.text("main_process_ip"));
  if (settings.given("main_process_port")) environment.set("MASTER_PORT", settings.text("main_process_port"));
  return environment;
}

Environment open_mpi_environment(const Environment& added, const Environment& inherited) {
  const std::string list = "OMPI_MCA_mca_base_env_list";
  const std::string delimiter = inherited.get("OMPI_MCA_mca_base_env_list_delimiter", ";");
  std::string names = inherited.get(list);
  for (const auto& [name, value] : added.variables()) names += (names.empty() ? "" : delimiter) + name;
  return {{list, names}};
}

}  // namespace acc::launcher
