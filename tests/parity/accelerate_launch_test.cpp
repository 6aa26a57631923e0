// SPDX-License-Identifier: Apache-2.0
// Recordings of accelerate 1.15.0's launch: acc adds the same variables and runs the same command, except for
// the rows of differences.yaml.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "acc/base/text.hpp"
#include "acc/plan/program.hpp"
#include "support/catch.hpp"
#include "support/recordings.hpp"
#include "support/run.hpp"
#include "support/temporary_folder.hpp"

namespace accelerate_launch_test {

using acc::Environment;
using acc::test::TemporaryFolder;
using nlohmann::json;

namespace {

std::set<std::string> texts(const YAML::Node& list) {
  std::set<std::string> result;
  for (const YAML::Node& entry : list) result.insert(entry.as<std::string>());
  return result;
}

// The values of a list key in all rows that apply to this recording; a row without `in` applies to all.
std::set<std::string> differences(const std::string& key, const std::string& recording = "") {
  std::set<std::string> result;
  for (const YAML::Node& row : YAML::LoadFile(ACC_TESTS_FOLDER "/parity/differences.yaml")) {
    const std::set<std::string> in = texts(row["in"]);
    if (in.empty() || in.contains(recording)) result.merge(texts(row[key]));
  }
  return result;
}

// Whether accelerate refuses something that only Python can check (a missing library), or only the launch
// itself (a port).
bool comes_later(const json& recording) {
  const std::string error = recording["error"].is_string() ? recording["error"].get<std::string>() : "";
  return error.starts_with("ImportError") || error.starts_with("RuntimeError") ||
         error.starts_with("ConnectionError");
}

bool is_refused(const json& recording) {
  return recording["kind"].is_null() || recording["kind"] == "sagemaker";
}

std::vector<std::string> launches() {
  const std::set<std::string> left_out = differences("recordings");
  std::vector<std::string> names = acc::test::recordings("launch_");
  std::erase_if(names, [&](const std::string& name) {
    return left_out.contains(name) || is_refused(acc::test::recording(name));
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
  if (!preset.value("p2p_supported", true)) {
    environment.set("FAKE_NVML_GPUS", "4");
    environment.set("FAKE_NVML_NAME", "NVIDIA GeForce RTX 4090");
    environment.set("FAKE_NVML_DRIVER", "535.183.01");
  }
  // Fakes of the other launchers, which need not be installed.
  const json mpi = preset.contains("mpi") && preset["mpi"].is_object() ? preset["mpi"] : json::object();
  for (const std::string name : {"mpirun", "mpiexec", "deepspeed"}) {
    if (name != "deepspeed" && !mpi.value(name, false)) continue;
    const auto file =
        folder.write("bin/" + name, "#!/bin/sh\necho 'mpirun " + mpi.value("version", "") + "'\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  environment.set("PATH", (folder.path() / "bin").string() + ":" + environment.get("PATH"));
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

json in_folder(json variables, const TemporaryFolder& folder) {
  const std::string path = std::filesystem::canonical(folder.path()).string();
  for (json& value : variables) {
    if (value == "<CWD>") value = path;
  }
  return variables;
}

// The command for the machines of a pod is after `--`.
json after_dashes(const json& command) {
  const auto dashes = std::find(command.begin(), command.end(), "--");
  return dashes == command.end() ? command : json(std::vector<json>(dashes + 1, command.end()));
}

json without(json variables, const std::set<std::string>& names) {
  for (const std::string& name : names) variables.erase(name);
  return variables;
}

// What acc shows for a recorded launch, and the recording, in a form that can be compared.
struct Shown {
  acc::test::Run run = {};
  json ours = {};
  json recorded = {};
};

Shown show(const std::string& name) {
  const std::set<std::string> not_compared = differences("variables", name);
  const json recording = acc::test::recording(name);
  const TemporaryFolder folder;
  folder.write("train.py", "");
  Shown shown;
  shown.run = acc::test::run(command_of(recording, folder), environment_of(recording, folder), "",
                             folder.path().string());
  if (shown.run.code != 0) return shown;
  const json ours = json::parse(shown.run.out);
  json expected = recording.contains("worker_command") ? recording["worker_command"] : recording["command"];
  for (json& word : expected) {
    if (word == "<PYTHON>")
      word =
          acc::launcher::find_python("", environment_of(recording, folder), acc::launcher::kind_of_file, {})
              .word;
  }
  json command =
      recording["kind"] == "tpu-pod" ? after_dashes(ours["worker_command"]) : ours["worker_command"];
  if (recording["kind"] == "tpu") command = expected;  // accelerate calls the function itself
  shown.ours = {
      {"launcher", ours["launcher"]}, {"env", without(ours["env"], not_compared)}, {"command", command}};
  shown.recorded = {{"launcher", recording["kind"]},
                    {"env", without(in_folder(recording["env_diff"], folder), not_compared)},
                    {"command", expected}};
  return shown;
}

// A dry run reports what this machine lacks, and still shows the rest.
bool is_refused(const acc::test::Run& run) {
  return run.code != 0 || run.out.find("cannot be started here: ") != std::string::npos;
}

}  // namespace

TEST_CASE("accelerate launch: acc refuses what accelerate refuses, except for the rows of differences.yaml",
          "[parity]") {
  const std::set<std::string> left_out = differences("recordings");
  int refused = 0;
  for (const std::string& name : acc::test::recordings("launch_")) {
    const json recording = acc::test::recording(name);
    if (!is_refused(recording) || comes_later(recording) || left_out.contains(name)) continue;
    INFO(name);
    const TemporaryFolder folder;
    folder.write("train.py", "");
    const acc::test::Run run = acc::test::run(command_of(recording, folder),
                                              environment_of(recording, folder), "", folder.path().string());
    INFO(run.err);
    ++refused;
    REQUIRE(is_refused(run));
    if (run.code == 0) continue;
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    // All problems of a file are reported at once, one per line.
    for (const std::string& line : acc::split(run.err, '\n'))
      CHECK((line.empty() || line.starts_with("acc: ")));
    CHECK_FALSE(run.err.empty());
  }
  CHECK(refused > 10);
}

TEST_CASE("accelerate launch: acc adds the same variables and runs the same command", "[parity]") {
  const std::vector<std::string> names = launches();
  REQUIRE(names.size() > 30);
  for (const std::string& name : names) {
    INFO(name);
    const Shown shown = show(name);
    INFO(shown.run.err);
    REQUIRE(shown.run.code == 0);
    CHECK(shown.ours == shown.recorded);
  }
}

TEST_CASE("accelerate launch: recordings are skipped only if acc's behaviour differs", "[parity]") {
  const std::set<std::string> held_back = differences("recordings");
  int cases = 0;
  for (const std::string& name : acc::test::recordings("launch_")) {
    if (!held_back.contains(name)) continue;
    INFO(name);
    ++cases;
    const Shown shown = show(name);
    const bool refused = is_refused(acc::test::recording(name));
    CHECK((refused ? !is_refused(shown.run) : is_refused(shown.run) || shown.ours != shown.recorded));
  }
  CHECK(cases > 5);
}

}  // namespace accelerate_launch_test
