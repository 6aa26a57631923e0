// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/config_check.hpp"

#include <string>

#include "acc/config/defaults.hpp"
#include "acc/plan/resolve.hpp"
#include "acc/plan/visible_devices.hpp"

namespace acc::launcher {
namespace {

// A machine on which everything is there that the file may name.
LaunchInputs inputs_for(const FileConfig& config) {
  LaunchInputs inputs;
  inputs.command_line = parse_command_line({"train.py"}, Dialect::launch);
  inputs.environment = Environment{{"PATH", "/usr/bin"}};
  inputs.file = file_settings(config);
  inputs.file_order = file_order(config);
  inputs.folder = "/";
  constexpr std::size_t kGpus = 256;
  inputs.machine.gpus = imagined_gpus(kGpus, value_in(config.values, key::gpu_ids).value_or(""));
  inputs.allowed_cores = [] { return 1; };
  inputs.file_kind = [](const std::filesystem::path&) { return FileKind::executable; };
  inputs.topology = [](const Machine&) { return Topology(); };
  inputs.own_names = [] { return OwnNames{.host_name = "localhost", .addresses = {"127.0.0.1"}}; };
  inputs.look_up = [](const std::string&) { return HostLookup{.addresses = {"127.0.0.1"}}; };
  return inputs;
}

}  // namespace

std::vector<Problem> launch_problems(const FileConfig& config) {
  if (kind_of(config.values) == ConfigKind::sagemaker) return {};
  try {
    return resolve(inputs_for(config)).problems;
  } catch (const Error& error) {
    return error.problems();
  }
}

}  // namespace acc::launcher
