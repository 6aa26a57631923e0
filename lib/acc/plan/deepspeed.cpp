// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/deepspeed.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/rendezvous.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {
namespace {

std::string launcher_name(const Settings& settings) {
  const std::string name = settings[key::deepspeed_multinode_launcher];
  return name.empty() ? "pdsh" : name;
}

bool is_of_section(const SettingSpec& spec) {
  return spec.section == row_of(key::deepspeed_config).name;
}

// The settings that come from the config file: accelerate refuses those that DeepSpeed's own file
// overrides.
std::string fields_of_file(const LaunchInputs& inputs, const Settings& settings) {
  std::vector<std::string> fields;
  for (const SettingId id : inputs.file_order) {
    const SettingSpec& spec = row_of(id);
    if (is_of_section(spec)) fields.push_back(to_lower(spec.name));
  }
  if (inputs.file.contains(key::mixed_precision) && !settings.is_explicit(key::mixed_precision))
    fields.emplace_back("mixed_precision");
  return join(fields, ",");
}

bool has_own_file(const Settings& settings) {
  const std::string file = settings[key::deepspeed_config_file];
  return !file.empty() && file != "none";
}

}  // namespace

bool uses_deepspeed_command(const JobShape& shape, const Settings& settings) {
  return shape.distributed_type == DistributedType::deepspeed && shape.num_machines > 1 &&
         launcher_name(settings) != "standard";
}

OtherLauncher deepspeed_command(const LaunchInputs& inputs, const JobShape& shape, const Settings& settings) {
  const std::string launcher = launcher_name(settings);
  if (!settings.given(key::deepspeed_hostfile)) {
    throw Error({.what = fmt::format("DeepSpeed's launcher {} needs a hostfile", launcher),
                 .where = settings.origin(key::num_machines),
                 .hint = "--deepspeed_hostfile FILE, or --deepspeed_multinode_launcher standard and acc on "
                         "every machine"});
  }
  OtherLauncher deepspeed = find_launcher({"deepspeed"}, inputs);
  std::vector<std::string>& words = deepspeed.command;
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  add({"--hostfile", settings[key::deepspeed_hostfile]});
  if (launcher == "nossh") {
    add({"--node_rank", fmt::to_string(shape.machine_rank), "--no_ssh"});
  } else {
    add({"--no_local_rank", "--launcher", launcher});
  }
  if (settings.given(key::deepspeed_exclusion_filter)) {
    add({"--exclude", settings[key::deepspeed_exclusion_filter]});
  } else if (settings.given(key::deepspeed_inclusion_filter)) {
    add({"--include", settings[key::deepspeed_inclusion_filter]});
  } else {
    add({"--num_gpus", fmt::to_string(shape.nproc_per_node)});
  }
  if (!trim(settings[key::main_process_ip]).empty())
    add({"--master_addr", main_process_host(settings, Dialect::launch)});
  add({"--master_port",
       settings.given(key::main_process_port) ? settings.text(key::main_process_port) : "29500"});
  if (settings[key::module]) add({"--module"});
  if (settings[key::no_python]) add({"--no_python"});
  words.insert(words.end(), inputs.command_line.program.begin(), inputs.command_line.program.end());
  return deepspeed;
}

Environment deepspeed_environment(const LaunchInputs& inputs, const Settings& settings) {
  Environment environment = section_variables(settings, key::deepspeed_config, TruthStyle::lower);
  environment.set("ACCELERATE_USE_DEEPSPEED", "true");
  if (!has_own_file(settings)) environment.erase("ACCELERATE_DEEPSPEED_CONFIG_FILE");
  environment.set("ACCELERATE_CONFIG_DS_FIELDS", fields_of_file(inputs, settings));
  // DeepSpeed starts processes in other folders; they must find the modules of this folder.
  const std::string inherited = inputs.environment.get("PYTHONPATH");
  environment.set("PYTHONPATH",
                  inherited.empty() ? inputs.folder.string() : inherited + ":" + inputs.folder.string());
  return environment;
}

std::string with_lines(const std::string& text, const std::vector<std::string>& lines) {
  std::vector<std::string> result = split(text, '\n');
  if (result.back().empty()) result.pop_back();
  for (const std::string& line : lines) {
    const std::string name = line.substr(0, line.find('=') + 1);
    std::erase_if(result, [&](const std::string& old) { return old.starts_with(name); });
    if (line.size() > name.size() && line.find_first_of("; \n<>") == std::string::npos)
      result.push_back(line);
  }
  return result.empty() ? "" : join(result, "\n") + "\n";
}

std::vector<Problem> deepspeed_problems(const Settings& settings) {
  std::vector<Problem> problems;
  if (!has_own_file(settings)) return problems;
  for (const SettingSpec& spec : schema()) {
    const bool overridden =
        spec.id == key::mixed_precision ||
        (is_of_section(spec) && !spec.name.starts_with("deepspeed_") && spec.id != key::zero3_init_flag);
    if (!overridden || !settings.given(spec.id) || settings.is_explicit(spec.id)) continue;
    problems.push_back(
        {.what = fmt::format("{} conflicts with deepspeed_config_file, which sets it", spec.name),
         .where = settings.origin(spec.id),
         .hint = "set it in one of the two files"});
  }
  return problems;
}

}  // namespace acc::launcher
