// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/tpu.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

// accelerate imports the script in its own process; acc is no Python, so Python does. Arguments: the
// function, `file` or `module`, the script, and its arguments.
constexpr std::string_view kSpawn = R"py(import importlib, pathlib, sys
from accelerate.utils import PrepareForLaunch
import torch_xla.distributed.xla_multiprocessing as xmp
function, kind, script = sys.argv[1:4]
if kind == "file":
    sys.path.append(str(pathlib.Path(script).parent.resolve()))
    script = pathlib.Path(script).stem
module = importlib.import_module(script)
if not hasattr(module, function):
    sys.exit(f"acc: {module.__file__} has no function {function} (--main_training_function names another)")
sys.argv = [module.__file__, *sys.argv[4:]]
xmp.spawn(PrepareForLaunch(getattr(module, function)), args=())
)py";

void refuse_no_python(const Settings& settings) {
  if (!settings.truth("no_python")) return;
  throw Error({.what = "TPU jobs are started by Python",
               .where = settings.origin("no_python"),
               .hint = "leave --no_python out"});
}

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

OtherLauncher python_launcher(const LaunchInputs& inputs, const Settings& settings) {
  const Python python =
      find_python(settings.text("python"), inputs.environment, inputs.file_kind, inputs.called_as);
  return {.command = {python.word}, .file = python.file, .problem = python.problem};
}

}  // namespace

OtherLauncher tpu_command(const LaunchInputs& inputs, const Settings& settings) {
  refuse_no_python(settings);
  OtherLauncher python = python_launcher(inputs, settings);
  append(python.command, {"-c", std::string(kSpawn), settings.text("main_training_function"),
                          settings.truth("module") ? "module" : "file"});
  append(python.command, inputs.command_line.program);
  return python;
}

OtherLauncher tpu_pod_command(const LaunchInputs& inputs, const Settings& settings) {
  refuse_no_python(settings);
  if (!settings.given("tpu_name")) {
    throw Error({.what = "the TPU pod has no name",
                 .where = settings.origin("tpu_use_cluster"),
                 .hint = "write tpu_name and tpu_zone into the config file"});
  }
  OtherLauncher python = python_launcher(inputs, settings);
  append(python.command, {"-m", "torch_xla.distributed.xla_dist", "--tpu=" + settings.text("tpu_name"),
                          "--restart-tpuvm-pod-server"});
  if (settings.given("tpu_vm")) {
    for (const Value& vm : settings["tpu_vm"].value)
      python.command.push_back("--vm=" + vm.get<std::string>());
  }
  Environment environment = tpu_environment(settings);
  environment.set("ACCELERATE_IN_TPU_POD", "1");
  for (const std::string& variable : environment.to_strings()) python.command.push_back("--env=" + variable);
  if (settings.given("tpu_env")) {
    for (const Value& variable : settings["tpu_env"].value)
      python.command.push_back("--env=" + variable.get<std::string>());
  }
  python.command.emplace_back("--");
  if (settings.truth("tpu_use_sudo")) python.command.emplace_back("sudo");
  append(python.command,
         {"accelerate-launch", "--tpu", "--no_tpu_cluster", "--num_machines", "1", "--mixed_precision", "no",
          "--dynamo_backend", "no", "--num_processes", settings.text("num_processes"),
          "--main_training_function", settings.text("main_training_function")});
  if (settings.truth("module")) python.command.emplace_back("--module");
  append(python.command, inputs.command_line.program);
  return python;
}

Environment tpu_environment(const Settings& settings) {
  Environment environment;
  if (settings.text("mixed_precision") == "bf16")
    environment.set(settings.truth("downcast_bf16") ? "XLA_DOWNCAST_BF16" : "XLA_USE_BF16", "1");
  if (settings.truth("debug")) environment.set("ACCELERATE_DEBUG_MODE", "true");
  return environment;
}

}  // namespace acc::launcher
