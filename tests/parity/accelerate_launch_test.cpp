// SPDX-License-Identifier: Apache-2.0
// Recordings of accelerate 1.15.0's launch: acc adds the same variables and runs the same command, save the
// rows of differences.yaml.
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <set>

#include "support/catch.hpp"
#include "support/recordings.hpp"
#include "support/run.hpp"
#include "support/temporary_folder.hpp"

using acc::Environment;
using acc::test::TemporaryFolder;
using nlohmann::json;

namespace {

// The values of one list key over all rows.
std::set<std::string> differences(const std::string& key) {
  std::set<std::string> result;
  for (const YAML::Node& row : YAML::LoadFile(ACC_TESTS_FOLDER "/parity/differences.yaml")) {
    for (const YAML::Node& entry : row[key]) result.insert(entry.as<std::string>());
  }
  return result;
}

std::vector<std::string> launches() {
  const std::set<std::string> left_out = differences("recordings");
  std::vector<std::string> names = acc::test::recordings("launch_");
  std::erase_if(names, [&](const std::string& name) {
    return name.starts_with("launch_err_") || left_out.contains(name);
  });
  return names;
}

json preset_of(const json& recording) {
  return recording.contains("preset") ? recording["preset"] : json::object();
}

Environment environment_of(const json& recording, const TemporaryFolder& folder) {
  Environment environment = acc::test::clean_environment(folder.path().string());
  const json preset = preset_of(recording);
  if (preset.contains("env")) {
    for (const auto& [name, value] : preset["env"].items()) environment.set(name, value.get<std::string>());
  }
  environment.set("LD_LIBRARY_PATH", ACC_FAKE_NVML);
  environment.set("FAKE_NVML_GPUS", std::to_string(preset.value("gpus", 0)));
  return environment;
}

std::vector<std::string> command_of(const json& recording, const TemporaryFolder& folder) {
  std::vector<std::string> command = {"acc", "launch", "--dry_run=json"};
  const std::string name = "config" + preset_of(recording).value("config_suffix", std::string(".yaml"));
  if (recording["config_yaml"].is_string()) folder.write(name, recording["config_yaml"].get<std::string>());
  for (const json& word : recording["argv"]) {
    command.push_back(word == "<CONFIG>" ? (folder.path() / name).string() : word.get<std::string>());
  }
  return command;
}

json without(json variables, const std::set<std::string>& names) {
  for (const std::string& name : names) variables.erase(name);
  return variables;
}

}  // namespace

TEST_CASE("accelerate launch: acc adds the same variables and runs the same command", "[parity]") {
  const std::set<std::string> not_compared = differences("variables");
  const std::vector<std::string> names = launches();
  REQUIRE(names.size() > 30);
  for (const std::string& name : names) {
    INFO(name);
    const json recording = acc::test::recording(name);
    const TemporaryFolder folder;
    folder.write("train.py", "");
    const acc::test::Run run = acc::test::run(command_of(recording, folder),
                                              environment_of(recording, folder), "", folder.path().string());
    INFO(run.err);
    REQUIRE(run.code == 0);
    const json ours = json::parse(run.out);
    CHECK(ours["launcher"] == recording["kind"]);
    CHECK(without(ours["env"], not_compared) == without(recording["env_diff"], not_compared));
    json expected = recording.contains("worker_command") ? recording["worker_command"] : recording["command"];
    if (expected[0] == "<PYTHON>") expected[0] = ours["worker_command"][0];
    CHECK(ours["worker_command"] == expected);
  }
}
