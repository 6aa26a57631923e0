// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "acc/plan/launch_inputs.hpp"
#include "support/setting_called.hpp"

namespace acc::test {

using namespace launcher;

/// A file system of a few named files; everything else is missing.
inline FileKindOf files(std::map<std::string, FileKind> known) {
  return [known = std::move(known)](const std::filesystem::path& path) {
    const auto found = known.find(path.string());
    return found == known.end() ? FileKind::missing : found->second;
  };
}

/// Inputs of a machine with 16 cores, `train.py`, `./a.out` and a Python.
inline LaunchInputs inputs(const std::vector<std::string>& words, Dialect dialect = Dialect::launch,
                           int gpus = 0) {
  LaunchInputs result;
  result.dialect = dialect;
  result.command_line = parse_command_line(words, dialect);
  result.environment = Environment{{"PATH", "/usr/bin:/bin"}};
  result.machine.online_cpus = 32;
  result.machine.allowed_cpus = 32;
  result.allowed_cores = [] { return 16; };
  for (int i = 0; i < gpus; ++i)
    result.machine.gpus.push_back({.index = i, .uuid = "GPU-" + std::to_string(i)});
  result.random_id = "random";
  result.folder = "/job";
  result.file_kind = files({{"train.py", FileKind::other},
                            {"./a.out", FileKind::executable},
                            {"/usr/bin/python3", FileKind::executable},
                            {"/usr/bin/mpirun", FileKind::executable},
                            {"/usr/bin/deepspeed", FileKind::executable}});
  result.own_names = [] {
    return OwnNames{.host_name = "node0", .addresses = {"127.0.0.1", "::1", "10.0.0.1", "fd00::1"}};
  };
  result.full_host_name = [] { return "node0"; };
  result.exchange = [](const Environment&, int, const std::string&) { return std::nullopt; };
  result.count_task_nodes = [](const Environment&) { return std::nullopt; };
  result.look_up = [](const std::string& host) -> HostLookup {
    const std::map<std::string, std::vector<std::string>> names = {{"localhost", {"127.0.0.1"}},
                                                                   {"node0", {"127.0.1.1"}},
                                                                   {"train", {"10.0.0.1", "fd00::1"}},
                                                                   {"node1", {"10.0.0.2"}}};
    if (const auto known = names.find(host); known != names.end()) return {.addresses = known->second};
    if (host.find_first_not_of("0123456789abcdef.:") == std::string::npos) return {.addresses = {host}};
    return {.error = "Name or service not known"};
  };
  return result;
}

/// A config file's settings by name, all from line 1 on of `job.yaml`.
inline SettingMap file(const Value& values) {
  SettingMap settings;
  int line = 0;
  for (const auto& [name, value] : values.items()) {
    settings[setting_called(name).id] = {value, "job.yaml:" + std::to_string(++line)};
  }
  return settings;
}

}  // namespace acc::test
