// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/other_launchers.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/rendezvous.hpp"

namespace acc::launcher {

OtherLauncher find_launcher(const std::vector<std::string>& names, const LaunchInputs& inputs) {
  for (const std::string& name : names) {
    WorkerProgram launcher =
        find_program({.words = {name}, .no_python = true}, inputs.environment, inputs.file_kind);
    if (!launcher.problem) return {.command = {name}, .file = launcher.file};
  }
  return {
      .command = {names.front()},
      .problem = Problem{.what = fmt::format("this job needs {}, which is not on PATH", join(names, " or ")),
                         .hint = "install it on this machine"}};
}

bool uses_mpi(const JobShape& shape, const Settings& settings) {
  return shape.launcher == Launcher::simple && settings.given(key::mpirun_hostfile);
}

OtherLauncher mpi_command(const LaunchInputs& inputs, const JobShape& shape, const Settings& settings,
                          const std::vector<std::string>& worker) {
  OtherLauncher mpi = find_launcher({"mpirun", "mpiexec"}, inputs);
  const std::string per_node = fmt::to_string(shape.nproc_per_node);
  const std::string total = fmt::to_string(shape.nproc_per_node * shape.num_machines);
  const std::string hostfile = settings[key::mpirun_hostfile];
  const std::vector<std::string> words =
      inputs.open_mpi ? std::vector<std::string>{"--hostfile", hostfile, "--npernode", per_node,
                                                 "-n",         total,    "--bind-to",  "socket"}
                      : std::vector<std::string>{"-f", hostfile, "-ppn", per_node, "-n", total};
  mpi.command.insert(mpi.command.end(), words.begin(), words.end());
  mpi.command.insert(mpi.command.end(), worker.begin(), worker.end());
  return mpi;
}

Environment mpi_environment(const JobShape& shape, const Settings& settings) {
  const bool has_address = !trim(settings[key::main_process_ip]).empty();
  if (shape.num_machines > 1 && !(has_address && settings.given(key::main_process_port))) {
    throw Error(
        {.what = fmt::format("{} machines need the address and port of machine 0", shape.num_machines),
         .where = settings.origin(key::num_machines),
         .hint = "--main_process_ip and --main_process_port"});
  }
  if (shape.num_machines * shape.nproc_per_node == 1) return {};
  // MPI processes need a port that is known in advance.
  Environment environment{{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  if (has_address) environment.set("MASTER_ADDR", main_process_host(settings, Dialect::launch));
  if (settings.given(key::main_process_port))
    environment.set("MASTER_PORT", settings.text(key::main_process_port));
  return environment;
}

Environment open_mpi_environment(const Environment& added, const Environment& inherited) {
  const std::string list = "OMPI_MCA_mca_base_env_list";
  const std::string delimiter = inherited.get("OMPI_MCA_mca_base_env_list_delimiter", ";");
  std::string names = inherited.get(list);
  for (const auto& [name, value] : added.variables()) names += (names.empty() ? "" : delimiter) + name;
  return {{list, names}};
}

namespace {

// accelerate imports the script in its own process; acc starts this Python program for it. Arguments: the
// function, `file` or `module`, the script, its arguments.
constexpr std::string_view kSpawn = R"py(import importlib, pathlib, sys
from accelerate.utils import PrepareForLaunch
import torch_xla.distributed.xla_multiprocessing as xmp
function, kind, script = sys.argv[1:4]
if kind == "file":
    sys.path.append(str(pathlib.Path(script).parent.resolve()))
    script = pathlib.Path(script).stem
module = importlib.import_module(script)
if not hasattr(module, function):
    sys.exit(f"acc: {module.__file__} has no function {function}; choose another with --main_training_function")
sys.argv = [module.__file__, *sys.argv[4:]]
xmp.spawn(PrepareForLaunch(getattr(module, function)), args=())
)py";

void refuse_no_python(const Settings& settings) {
  if (!settings[key::no_python]) return;
  throw Error({.what = "TPU jobs are started by Python",
               .where = settings.origin(key::no_python),
               .hint = "leave --no_python out"});
}

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

OtherLauncher python_launcher(const LaunchInputs& inputs, const Settings& settings) {
  const Python python =
      find_python(settings[key::python], inputs.environment, inputs.file_kind, inputs.caller);
  return {.command = {python.word}, .file = python.file, .problem = python.problem};
}

}  // namespace

OtherLauncher tpu_command(const LaunchInputs& inputs, const Settings& settings) {
  refuse_no_python(settings);
  OtherLauncher python = python_launcher(inputs, settings);
  append(python.command, {"-c", std::string(kSpawn), settings[key::main_training_function],
                          settings[key::module] ? "module" : "file"});
  append(python.command, inputs.command_line.program);
  return python;
}

OtherLauncher tpu_pod_command(const LaunchInputs& inputs, const Settings& settings) {
  refuse_no_python(settings);
  if (!settings.given(key::tpu_name)) {
    throw Error({.what = "the TPU pod has no name",
                 .where = settings.origin(key::tpu_use_cluster),
                 .hint = "write tpu_name and tpu_zone into the config file"});
  }
  OtherLauncher python = python_launcher(inputs, settings);
  append(python.command, {"-m", "torch_xla.distributed.xla_dist", "--tpu=" + settings[key::tpu_name],
                          "--restart-tpuvm-pod-server"});
  for (const std::string& vm : settings[key::tpu_vm]) python.command.push_back("--vm=" + vm);
  Environment environment = tpu_environment(settings);
  environment.set("ACCELERATE_IN_TPU_POD", "1");
  for (const std::string& variable : environment.to_strings()) python.command.push_back("--env=" + variable);
  for (const std::string& variable : settings[key::tpu_env]) python.command.push_back("--env=" + variable);
  python.command.emplace_back("--");
  if (settings[key::tpu_use_sudo]) python.command.emplace_back("sudo");
  append(python.command,
         {"accelerate-launch", "--tpu", "--no_tpu_cluster", "--num_machines", "1", "--mixed_precision", "no",
          "--dynamo_backend", "no", "--num_processes", settings.text(key::num_processes),
          "--main_training_function", settings[key::main_training_function]});
  if (settings[key::module]) python.command.emplace_back("--module");
  append(python.command, inputs.command_line.program);
  return python;
}

Environment tpu_environment(const Settings& settings) {
  Environment environment;
  if (settings[key::mixed_precision] == "bf16")
    environment.set(settings[key::downcast_bf16] ? "XLA_DOWNCAST_BF16" : "XLA_USE_BF16", "1");
  if (settings[key::debug]) environment.set("ACCELERATE_DEBUG_MODE", "true");
  return environment;
}

}  // namespace acc::launcher
