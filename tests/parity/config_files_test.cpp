// SPDX-License-Identifier: Apache-2.0
// acc and accelerate read each other's config files as the same settings.
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/peers.hpp"
#include "support/recordings.hpp"
#include "support/run.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

namespace config_files_test {

using acc::test::Run;
using acc::test::TemporaryFolder;
using nlohmann::json;

namespace fs = std::filesystem;

namespace {

// The samples, what accelerate's questionnaire wrote, and what `acc config default` writes.
std::vector<std::string> write_files(const TemporaryFolder& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(ACC_SAMPLE_CONFIGS)) {
    if (entry.path().extension() != ".yaml") continue;
    files.push_back((folder.path() / entry.path().filename()).string());
    fs::copy_file(entry.path(), files.back());
  }
  for (const std::string& name : acc::test::recordings("config_")) {
    const json yaml = acc::test::recording(name).at("yaml");
    // accelerate cannot read all of its own SageMaker files, and acc starts none.
    if (yaml.is_null() || name.starts_with("config_sagemaker")) continue;
    files.push_back(folder.write(name + ".yaml", yaml.get<std::string>()).string());
  }
  return files;
}

// `acc config update` of a copy.
std::string updated(const std::string& file, const std::string& copy) {
  fs::copy_file(file, copy);
  const fs::path folder = fs::path(copy).parent_path();
  const Run run = acc::test::run({"acc", "config", "update", "--config_file", copy},
                                 acc::test::clean_environment(folder.string()));
  INFO(run.err);
  REQUIRE(run.code == 0);
  return copy;
}

json ask_peer(const std::string& python, const std::string& command, const std::vector<std::string>& files) {
  std::vector<std::string> words = {python, ACC_TESTS_FOLDER "/parity/config_files.py", command};
  words.insert(words.end(), files.begin(), files.end());
  const fs::path folder = fs::path(files.front()).parent_path();
  const Run run = acc::test::run(words, acc::test::clean_environment(folder.string()));
  if (run.err.find("No module named 'accelerate'") != std::string::npos) {
    acc::test::skip("ACC_PEER_PYTHON names no Python with the peers");
    std::exit(acc::test::kSkipped);
  }
  INFO(run.err);
  REQUIRE(run.code == 0);
  return json::parse(run.out);
}

// Removes what only acc writes, and what accelerate writes as text or under names that nothing reads.
json settled(json settings) {
  const std::map<std::string, std::string> names = {{"amax_history_length", "amax_history_len"},
                                                    {"amax_compute_algorithm", "amax_compute_algo"},
                                                    {"optimization_level", "opt_level"}};
  for (const auto& [theirs, ours] : names) {
    if (!settings.contains("fp8_config") || !settings["fp8_config"].contains(theirs)) continue;
    settings["fp8_config"][ours] = settings["fp8_config"][theirs];
    settings["fp8_config"].erase(theirs);
  }
  if (!settings.contains("mixed_precision")) settings["mixed_precision"] = "no";
  for (const char* key : {"downcast_bf16", "tpu_use_sudo"}) {
    if (settings.at(key).is_string()) settings[key] = settings[key] == "yes";
  }
  return settings;
}

}  // namespace

TEST_CASE("config files: each reads what the other writes as the same settings", "[parity]") {
  const std::string python = acc::test::peer_python();
  const TemporaryFolder folder;
  const std::vector<std::string> files = write_files(folder);
  REQUIRE(files.size() > 20);
  ask_peer(python, "save", files);

  std::vector<std::string> all = files;
  for (const std::string& file : files) {
    INFO(file);
    const std::string ours = updated(file, file + ".acc.yaml");
    const std::string through_yaml = updated(file + ".peer.yaml", file + ".both.yaml");
    const std::string through_json = updated(file + ".peer.json", file + ".both.json");
    for (const std::string& written : {ours, through_yaml, through_json}) all.push_back(written);
  }

  const json shown = ask_peer(python, "show", all);
  for (const std::string& file : files) {
    INFO(file);
    const json meant = settled(shown.at(file));
    CHECK(settled(shown.at(file + ".acc.yaml")) == meant);
    CHECK(settled(shown.at(file + ".both.yaml")) == meant);
    CHECK(settled(shown.at(file + ".both.json")) == meant);
  }
}

TEST_CASE("config files: accelerate reads what `acc config default` writes", "[parity]") {
  const std::string python = acc::test::peer_python();
  const TemporaryFolder folder;
  acc::Environment environment = acc::test::clean_environment(folder.path().string());
  environment.set("LD_LIBRARY_PATH", ACC_FAKE_NVML);
  std::vector<std::string> files;
  for (const std::string gpus : {"0", "1", "4"}) {
    for (const std::string suffix : {".yaml", ".json"}) {
      files.push_back((folder.path() / (gpus + suffix)).string());
      environment.set("FAKE_NVML_GPUS", gpus);
      REQUIRE(acc::test::run({"acc", "config", "default", "--config_file", files.back()}, environment).code ==
              0);
    }
  }
  const json shown = ask_peer(python, "show", files);
  for (const std::string gpus : {"0", "1", "4"}) {
    const json settings = shown.at((folder.path() / (gpus + ".yaml")).string());
    CHECK(settings == shown.at((folder.path() / (gpus + ".json")).string()));
    CHECK(settings.at("num_processes") == (gpus == "4" ? 4 : 1));
    CHECK(settings.at("distributed_type") == (gpus == "4" ? "MULTI_GPU" : "NO"));
    CHECK(settings.at("use_cpu") == (gpus == "0"));
  }
}

}  // namespace config_files_test
