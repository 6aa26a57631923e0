// SPDX-License-Identifier: Apache-2.0
#include "acc/script/job_manifest.hpp"

#include <yaml-cpp/yaml.h>

#include "support/catch.hpp"

namespace job_manifest_test {

using acc::launcher::indexed_job_manifest;
using acc::launcher::jobset_manifest;
using acc::launcher::ScriptJob;
using acc::launcher::ScriptKind;

namespace {

ScriptJob two_nodes(ScriptKind kind) {
  return {.kind = kind,
          .name = "train",
          .typed = {"acc", "launch", "train.py\xc2\x85"},
          .words = {"acc", "launch", "--nnodes", "2", "no: {}\n# $(x)"},
          .environment = {{"PET_LOG_DIR", "/logs"}},
          .nodes = 2,
          .min_nodes = 2,
          .workers_per_node = 8,
          .gpus_per_node = 8,
          .cpus_per_node = 64,
          .grace_seconds = 45};
}

void check_pod(const YAML::Node& pod) {
  CHECK(pod["restartPolicy"].as<std::string>() == "Never");
  CHECK(pod["terminationGracePeriodSeconds"].as<int>() == 45);
  const YAML::Node container = pod["containers"][0];
  CHECK(container["command"].as<std::vector<std::string>>() ==
        std::vector<std::string>{"acc", "launch", "--nnodes", "2", "no: {}\n# $$(x)"});
  const YAML::Node variable = container["env"][container["env"].size() - 1];
  CHECK(variable["name"].as<std::string>() == "PET_LOG_DIR");
  CHECK(variable["value"].as<std::string>() == "/logs");
  CHECK(container["resources"]["limits"]["nvidia.com/gpu"].as<int>() == 8);
  CHECK(container["resources"]["requests"]["cpu"].as<int>() == 64);
  CHECK(container["volumeMounts"][0]["mountPath"].as<std::string>() == "/dev/shm");
  CHECK(pod["volumes"][0]["emptyDir"]["medium"].as<std::string>() == "Memory");
}

std::string action(const YAML::Node& job) {
  const YAML::Node rule = job["podFailurePolicy"]["rules"][0];
  CHECK(rule["onExitCodes"]["values"][0].as<int>() == 75);
  return rule["action"].as<std::string>();
}

}  // namespace

TEST_CASE("job manifest: an Indexed Job has a pod per node, and a headless Service that names them",
          "[script]") {
  const auto documents = YAML::LoadAll(indexed_job_manifest(two_nodes(ScriptKind::k8s)));
  REQUIRE(documents.size() == 2);
  const YAML::Node& service = documents[0];
  CHECK(service["kind"].as<std::string>() == "Service");
  CHECK(service["spec"]["clusterIP"].as<std::string>() == "None");
  CHECK(service["spec"]["selector"]["job-name"].as<std::string>() == "train");
  const YAML::Node job = documents[1]["spec"];
  CHECK(job["completionMode"].as<std::string>() == "Indexed");
  CHECK(job["completions"].as<int>() == 2);
  CHECK(job["parallelism"].as<int>() == 2);
  CHECK(action(job) == "Ignore");
  CHECK(job["template"]["spec"]["subdomain"].as<std::string>() ==
        service["metadata"]["name"].as<std::string>());
  check_pod(job["template"]["spec"]);
}

TEST_CASE("job manifest: a name is a text, also where YAML has another meaning for the word", "[script]") {
  for (const std::string name : {"true", "no", "null", "y"}) {
    ScriptJob job = two_nodes(ScriptKind::k8s);
    job.name = name;
    const std::string text = indexed_job_manifest(job);
    CHECK(text.find("name: " + name + "\n") == std::string::npos);
    CHECK(YAML::LoadAll(text).front()["metadata"]["name"].as<std::string>() == name);
  }
}

TEST_CASE("job manifest: one node needs no Service and no index", "[script]") {
  ScriptJob one = two_nodes(ScriptKind::k8s);
  one.nodes = one.min_nodes = 1;
  const auto documents = YAML::LoadAll(indexed_job_manifest(one));
  REQUIRE(documents.size() == 1);
  CHECK_FALSE(documents[0]["spec"]["completionMode"]);
  CHECK_FALSE(documents[0]["spec"]["template"]["spec"]["subdomain"]);
}

TEST_CASE("job manifest: a JobSet starts all pods again when acc asks for it", "[script]") {
  const auto documents = YAML::LoadAll(jobset_manifest(two_nodes(ScriptKind::jobset)));
  REQUIRE(documents.size() == 1);
  const YAML::Node spec = documents[0]["spec"];
  const YAML::Node rule = spec["failurePolicy"]["rules"][0];
  CHECK(rule["action"].as<std::string>() == "RestartJobSetAndIgnoreMaxRestarts");
  CHECK(rule["onJobFailureReasons"][0].as<std::string>() == "PodFailurePolicy");
  const YAML::Node job = spec["replicatedJobs"][0]["template"]["spec"];
  CHECK(action(job) == "FailJob");
  CHECK(job["completions"].as<int>() == 2);
  check_pod(job["template"]["spec"]);
}

TEST_CASE("job manifest: a config file comes along unchanged", "[script]") {
  for (const std::string text : {"a: 1\n# why\nb: [x]\n", "{\n \"a\": 1}", "\ta\n", " a\n\n", ""}) {
    ScriptJob job = two_nodes(ScriptKind::jobset);
    job.config = {.path = "/etc/acc/config.yaml", .text = text};
    const auto documents = YAML::LoadAll(jobset_manifest(job));
    REQUIRE(documents.size() == 2);
    CHECK(documents[0]["data"]["config.yaml"].as<std::string>() == text);
    const YAML::Node pod = documents[1]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    CHECK(pod["containers"][0]["volumeMounts"][1]["mountPath"].as<std::string>() == "/etc/acc");
    CHECK(pod["volumes"][1]["configMap"]["name"].as<std::string>() ==
          documents[0]["metadata"]["name"].as<std::string>());
  }
}

TEST_CASE("job manifest: without known GPUs they are a suggestion", "[script]") {
  ScriptJob job = two_nodes(ScriptKind::k8s);
  job.gpus_per_node = 0;
  job.may_use_gpus = true;
  const std::string text = indexed_job_manifest(job);
  CHECK(text.find("#   nvidia.com/gpu: 8\n") != std::string::npos);
  CHECK_FALSE(YAML::LoadAll(text)[1]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]);
}

}  // namespace job_manifest_test
