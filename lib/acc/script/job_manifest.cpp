// SPDX-License-Identifier: Apache-2.0
#include "acc/script/job_manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "acc/base/text.hpp"
#include "acc/script/script_words.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kComment = R"(# {what}, printed by
#   {typed}
# Change what is marked with CHANGE, check the resources, then: kubectl create -f FILE
)";

constexpr std::string_view kConfigMap = R"(apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
data:
  {file}: {text}
---
)";

constexpr std::string_view kService = R"(apiVersion: v1
kind: Service
metadata:
  name: {name}
spec:
  # Headless: it gives the pods names.
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    job-name: {name}
---
)";

constexpr std::string_view kJob = R"(apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
)";

constexpr std::string_view kJobSet = R"(apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {name}
spec:
  failurePolicy:
    # All pods start again when acc asks for it (75), and when the cluster took one of them away.
    maxRestarts: 0
    rules:
    - name: requeue
      action: RestartJobSetAndIgnoreMaxRestarts
      onJobFailureReasons: [PodFailurePolicy]
  replicatedJobs:
  - name: node
    replicas: 1
    template:
      spec:
)";

constexpr std::string_view kIndexed =
    R"(# A pod per node, numbered from 0. acc gets their number by --nnodes: change both.
completionMode: Indexed
completions: {nodes}
parallelism: {nodes}
)";

constexpr std::string_view kPolicy = R"(backoffLimit: 0
podFailurePolicy:
  rules:
  - action: {action}
    onExitCodes:
      containerName: acc
      operator: In
      values: [75]
  - action: {action}
    onPodConditions:
    - type: DisruptionTarget
      status: "True"
# activeDeadlineSeconds: 86400
template:
  spec:
)";

constexpr std::string_view kPod = R"(restartPolicy: Never
# What acc needs at most to end the workers.
terminationGracePeriodSeconds: {grace}
containers:
- name: acc
  # CHANGE: an image with acc, the training and what it needs.
  image: registry.example.com/training:latest
  # acc is the first process of the container, which gets the signals: no shell in front.
  command: [{command}]
)";

// The annotation counts the restarts of the set, so that each start is a run of its own for acc.
constexpr std::string_view kRestarts = R"(- name: JOBSET_RESTART_ATTEMPT
  valueFrom:
    fieldRef:
      fieldPath: metadata.annotations['jobset.sigs.k8s.io/restart-attempt']
)";

constexpr std::string_view kNoGpus = R"(  # The machine where this was printed has no GPU. One per worker:
  # limits:
  #   nvidia.com/gpu: {}
)";

// In each line but empty ones.
std::string indent(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines) {
    if (!line.empty()) line.insert(0, columns, ' ');
  }
  return join(lines, "\n");
}

// Whether YAML can have the text in a comment or a literal block.
bool needs_no_escapes(std::string_view text) {
  std::string line(text);
  std::erase_if(line, [](char c) { return c == '\n' || c == '"' || c == '\\'; });
  return yaml_text(line) == '"' + line + '"';
}

// YAML 1.1, which Kubernetes reads, takes some words for truth values or nothing.
std::string name_text(const std::string& name) {
  constexpr std::array<std::string_view, 9> kWords = {"y",   "n",    "yes",   "no",  "on",
                                                      "off", "true", "false", "null"};
  return std::ranges::find(kWords, name) == kWords.end() ? name : yaml_text(name);
}

std::string comment_on(const ScriptJob& job, std::string_view what) {
  const std::string command = bash_command(job.typed);
  return fmt::format(kComment, fmt::arg("what", what),
                     fmt::arg("typed", needs_no_escapes(command) ? command : yaml_text(command)));
}

// The config file, which pods do not see otherwise.
std::string config_map(const ScriptJob& job) {
  if (!job.config) return {};
  const std::string& text = job.config->text;
  const bool one_newline = text.size() > 1 && text.ends_with('\n') && text[text.size() - 2] != '\n';
  const bool is_block = one_newline && text.front() != ' ' && text.front() != '\n' && needs_no_escapes(text);
  return fmt::format(
      kConfigMap, fmt::arg("name", name_text(job.name)),
      fmt::arg("file", job.config->path.filename().string()),
      fmt::arg("text", is_block ? "|\n" + indent(text.substr(0, text.size() - 1), 4) : yaml_text(text)));
}

std::string command_of(const ScriptJob& job) {
  std::vector<std::string> words;
  for (const std::string& word : job.words) words.push_back(kubernetes_text(word));
  return join(words, ", ");
}

std::string env_of(const ScriptJob& job) {
  std::string text;
  if (job.kind == ScriptKind::jobset) text += kRestarts;
  for (const auto& [name, value] : job.environment.variables())
    text += fmt::format("- name: {}\n  value: {}\n", name, kubernetes_text(value));
  return text.empty() ? text : "env:\n" + text;
}

std::string resources_of(const ScriptJob& job) {
  std::string text = "resources:\n";
  if (job.gpus_per_node > 0) text += fmt::format("  limits:\n    nvidia.com/gpu: {}\n", job.gpus_per_node);
  if (job.may_use_gpus) text += fmt::format(kNoGpus, job.workers_per_node);
  return text + fmt::format("  requests:\n    cpu: {}\n    # memory: 64Gi\n", job.cpus_per_node);
}

std::string volumes_of(const ScriptJob& job) {
  std::string text = R"(  volumeMounts:
  - name: shm
    mountPath: /dev/shm
)";
  if (job.config) {
    text += fmt::format("  - name: config\n    mountPath: {}\n    readOnly: true\n",
                        job.config->path.parent_path().string());
  }
  text += R"(volumes:
# Shared memory for data loaders and NCCL; it counts as memory of the pod. Without it there are 64 MiB.
- name: shm
  emptyDir:
    medium: Memory
)";
  if (job.config) text += fmt::format("- name: config\n  configMap:\n    name: {}\n", name_text(job.name));
  return text;
}

// A Job that does `action` when acc asks for another start, and when the cluster takes a pod away. `service`
// names the pods; empty: what starts the Job makes one.
std::string job_spec(const ScriptJob& job, std::string_view service, std::string_view action) {
  std::string pod =
      fmt::format(kPod, fmt::arg("grace", job.grace_seconds), fmt::arg("command", command_of(job)));
  if (!service.empty())
    pod = fmt::format("# The Service: pods find the first one by its name.\nsubdomain: {}\n{}", service, pod);
  pod += indent(env_of(job), 2) + indent(resources_of(job), 2) + volumes_of(job);
  std::string text;
  if (job.nodes > 1 || job.kind == ScriptKind::jobset)
    text = fmt::format(kIndexed, fmt::arg("nodes", job.nodes));
  return text + fmt::format(kPolicy, fmt::arg("action", action)) + indent(pod, 4);
}

}  // namespace

std::string indexed_job_manifest(const ScriptJob& job) {
  const bool several = job.nodes > 1;
  std::string text = comment_on(job, "A Job of Kubernetes") + config_map(job);
  if (several) text += fmt::format(kService, fmt::arg("name", name_text(job.name)));
  text += fmt::format(kJob, fmt::arg("name", name_text(job.name)));
  text +=
      R"(  # A pod starts again when acc asks for it (75), and when the cluster took it away: then the others wait for
  # it, with --max-restarts. Any other failure ends the job.
)";
  return text + indent(job_spec(job, several ? name_text(job.name) : "", "Ignore"), 2);
}

std::string jobset_manifest(const ScriptJob& job) {
  return comment_on(job, "A JobSet of Kubernetes") + config_map(job) +
         fmt::format(kJobSet, fmt::arg("name", name_text(job.name))) +
         indent(job_spec(job, "", "FailJob"), 8);
}

}  // namespace acc::launcher
