// SPDX-License-Identifier: Apache-2.0
#include "acc/script/job_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "acc/base/engine.hpp"
#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/job_shape.hpp"
#include "acc/plan/program.hpp"
#include "acc/plan/resolve.hpp"
#include "acc/plan/usage_error.hpp"
#include "acc/plan/visible_devices.hpp"
#include "acc/script/batch_script.hpp"
#include "acc/script/job_manifest.hpp"
#include "acc/script/script_words.hpp"

namespace acc::launcher {
namespace {

/// How the command reaches the nodes of a job.
struct KindRow {
  std::string_view word;
  ScriptKind kind;
  /// The engine that acc finds there, by its word of --engine; empty: none in particular.
  std::string_view engine;
  /// The nodes do not see the files of this machine.
  bool in_pods;
};

constexpr std::array kKinds = {
    KindRow{"slurm", ScriptKind::slurm, "slurm", false}, KindRow{"k8s", ScriptKind::k8s, "k8s", true},
    KindRow{"jobset", ScriptKind::jobset, "k8s", true}, KindRow{"pbs", ScriptKind::pbs, "mpi", false}};

const KindRow& row_of(std::string_view word) {
  return *std::ranges::find(kKinds, word, &KindRow::word);
}

bool trains_on_gpus(DistributedType type) {
  using enum DistributedType;
  return type == multi_gpu || type == fsdp || type == deepspeed || type == megatron_lm;
}

// Where the program must be told from the options, or its first argument is a separator, which acc would take
// for its own.
bool needs_separator(const std::vector<std::string>& program) {
  return (program.front().starts_with('-') && program.front() != "-") ||
         (program.size() > 1 && program[1] == "--");
}

class ScriptPlanner {
 public:
  ScriptPlanner(const LaunchInputs& inputs, const std::string& acc, std::optional<ConfigText> config)
      : inputs_(inputs),
        settings_(inputs),
        row_(row_of(settings_[key::print_script])),
        acc_(acc),
        config_(std::move(config)) {}

  ScriptJob plan() {
    check_surroundings();
    check_settings();
    set_shape();
    set_words();
    set_environment();
    const LaunchPlan plan = resolve(node_inputs());
    const auto grace = std::chrono::ceil<std::chrono::seconds>(plan.shutdown_timeout);
    constexpr int kMargin = 15;
    job_.grace_seconds = static_cast<int>(grace.count()) + kMargin;
    return std::move(job_);
  }

 private:
  // What an engine told this process does not hold for the job. A pod that is not one of a Job knows nothing.
  void check_surroundings() const {
    const Engine engine = find_engine(inputs_.environment);
    if (!engine || (engine.family == EngineFamily::kubernetes && !engine.rank && !engine.problem)) return;
    fail("--print-script",
         fmt::format("acc runs in {} here, which starts the command itself", full_name(engine)),
         "print the script outside of it");
  }

  void check_settings() const {
    if (inputs_.command_line.program.empty())
      fail("", "the following arguments are required: training_script",
           "as in `acc launch train.py --lr 0.1`");
    // They give the nodes of a job, which the script asks an engine for.
    for (const SettingId id : {SettingId(key::hosts), SettingId(key::hostfile), SettingId(key::srun),
                               SettingId(key::machine_rank), SettingId(key::main_process_ip)}) {
      const auto flag = inputs_.command_line.flags.find(id);
      const bool of_file =
          id == key::main_process_ip && settings_.given(id) && (!inputs_.file_is_default || row_.in_pods);
      if (flag == inputs_.command_line.flags.end() && !of_file && !settings_.is_explicit(id)) continue;
      const std::string origin =
          flag == inputs_.command_line.flags.end() ? settings_.origin(id) : flag->second.origin;
      fail(origin,
           "the script asks the engine for nodes, which are not known yet: it tells acc there which they are",
           "drop it, or --print-script");
    }
    if (settings_.is_explicit(key::engine) && settings_[key::engine] != row_.engine)
      fail(settings_.origin(key::engine),
           fmt::format("is not {}, which acc finds in such a job", row_.engine), "drop it");
    const std::string workers = settings_[key::nproc_per_node];
    const bool here = workers == "gpu" && !visible_gpus(inputs_.machine, inputs_.environment).empty();
    if ((workers == "gpu" || workers == "cpu" || workers == "auto") && !here)
      fail(settings_.origin(key::nproc_per_node),
           fmt::format("how many workers `{}` means on a node of the job is not known here", workers),
           "give their number");
  }

  void set_shape() {
    const bool on_cpu =
        settings_[key::use_cpu] || settings_[key::distributed_type] == DistributedType::multi_cpu;
    is_counted_ = settings_.given(key::num_processes) && !settings_.given(key::nproc_per_node);
    const JobShape shape = decide_shape(inputs_, settings_);
    if (shape.delegated) {
      fail("--print-script",
           fmt::format("jobs of {} are started by another launcher on their nodes",
                       word_of(shape.distributed_type)),
           "for DeepSpeed --deepspeed_multinode_launcher standard lets acc start them");
    }
    job_.kind = row_.kind;
    job_.requeues_on_preemption = inputs_.command_line.flags.contains(key::requeue_on_preemption);
    job_.min_nodes = shape.min_machines;
    job_.nodes = shape.num_machines;
    job_.workers_per_node = shape.nproc_per_node;
    if (job_.min_nodes != job_.nodes && row_.kind != ScriptKind::slurm) {
      fail(settings_.origin(key::nnodes),
           fmt::format("{} starts a fixed number of nodes, not {}", row_.word, settings_[key::nnodes]),
           "give one number");
    }
    if (job_.min_nodes != job_.nodes && settings_[key::rdzv_backend] == "static") {
      fail(settings_.origin(key::nnodes), "the static rendezvous does not go on with fewer nodes",
           "--rdzv-backend c10d, or one number");
    }
    if (job_.nodes > 1 && settings_[key::standalone])
      fail(settings_.origin(key::standalone), fmt::format("is a job of one machine, not of {}", job_.nodes),
           "drop it");
    set_devices(shape, on_cpu);
  }

  void set_devices(const JobShape& shape, bool on_cpu) {
    const bool any = !visible_gpus(inputs_.machine, inputs_.environment).empty();
    const std::string ids = settings_[key::gpu_ids];
    const bool named = selects_devices(ids);
    const bool gpus = !on_cpu && (any || named || trains_on_gpus(shape.distributed_type));
    if (gpus) {
      job_.gpus_per_node = named ? count_devices(ids, shape.distributed_type, settings_.origin(key::gpu_ids))
                                 : job_.workers_per_node;
    }
    job_.may_use_gpus = !gpus && !on_cpu;
    constexpr int kThreadsWithGpu = 8;
    constexpr int kThreads = 4;
    int threads = on_cpu ? kThreads : kThreadsWithGpu;
    if (const auto given = settings_[key::num_cpu_threads_per_process])
      threads = static_cast<int>(std::get<std::int64_t>(*given));
    job_.cpus_per_node = job_.workers_per_node * std::max(threads, 1);
  }

  // The engine tells acc the number of nodes, but for pods. A number of workers over all of them is one per
  // node, so that whoever changes the nodes of the script changes nothing else.
  void set_words() {
    const CommandLine& line = inputs_.command_line;
    const bool counts = is_counted_ && (job_.nodes > 1 || job_.workers_per_node > 1);
    job_.typed = {"acc", "launch"};
    job_.words = {row_.in_pods ? "acc" : acc_, "launch"};
    if (row_.in_pods && (job_.nodes > 1 || row_.kind == ScriptKind::jobset)) {
      job_.words.insert(job_.words.end(), {"--nnodes", fmt::to_string(job_.nodes)});
    } else if (job_.min_nodes != job_.nodes) {
      job_.words.insert(job_.words.end(), {"--nnodes", fmt::format("{}:{}", job_.min_nodes, job_.nodes)});
    }
    if (counts)
      job_.words.insert(job_.words.end(), {"--nproc_per_node", fmt::to_string(job_.workers_per_node)});
    if (row_.in_pods && config_) {
      const bool is_json = config_->path.extension() == ".json";
      job_.config = {.path = is_json ? "/etc/acc/config.json" : "/etc/acc/config.yaml",
                     .text = config_->text};
      job_.words.insert(job_.words.end(), {"--config_file", job_.config->path.string()});
    }
    for (const TypedFlag& flag : line.typed) {
      job_.typed.insert(job_.typed.end(), flag.words.begin(), flag.words.end());
      if (flag.setting == key::print_script || flag.setting == key::nnodes ||
          flag.setting == key::num_machines)
        continue;
      if (flag.setting == key::num_processes && counts) continue;
      if (flag.setting == key::config_file && job_.config) continue;
      job_.words.insert(job_.words.end(), flag.words.begin(), flag.words.end());
    }
    for (std::vector<std::string>* words : {&job_.typed, &job_.words}) {
      const bool is_no_value = line.switch_before_program.empty() && looks_like_value(line.program);
      if (is_no_value || needs_separator(line.program)) words->emplace_back("--");
      words->insert(words->end(), line.program.begin(), line.program.end());
    }
    job_.name = dns_label(std::filesystem::path(line.program.front()).stem().string());
  }

  // Variables of settings, but for those that the job gets from its engine, or that a flag overrides.
  void set_environment() {
    for (const SettingSpec& spec : schema()) {
      for (const std::string_view variable : {spec.variable, spec.pet}) {
        if (variable.empty() || settings_.origin(spec.id) != variable) continue;
        if (spec.id == key::nnodes || spec.id == key::engine) continue;
        job_.environment.set(std::string(variable), inputs_.environment.get(variable));
      }
    }
  }

  // The inputs of acc on the first node of the job.
  LaunchInputs node_inputs() const {
    LaunchInputs node = inputs_;
    node.command_line = parse_command_line({job_.words.begin() + 2, job_.words.end()}, inputs_.dialect);
    // The NUMA nodes of another machine are not those of the node.
    node.command_line.flags.erase(key::numa_binding);
    node.environment = engine_environment();
    node.environment.overlay(job_.environment);
    for (const char* name : {"PATH", "HOME"}) node.environment.set(name, inputs_.environment.get(name));
    if (row_.in_pods) node.file_is_default = false;
    node.machine.gpus = imagined_gpus(static_cast<std::size_t>(job_.gpus_per_node), settings_[key::gpu_ids]);
    node.look_up = [](const std::string&) { return HostLookup{.addresses = {"127.0.0.1"}}; };
    node.full_host_name = [] { return std::string("pod-0.job"); };
    node.exchange = [](const Environment&, int, const std::string&) {
      return FirstTask{.text = "node0", .job = "job"};
    };
    return node;
  }

  Environment engine_environment() const {
    const std::string nodes = fmt::to_string(job_.nodes);
    switch (row_.kind) {
      case ScriptKind::slurm:
        return {{"SLURM_JOB_ID", "1"},
                {"SLURM_STEP_ID", "0"},
                {"SLURM_PROCID", "0"},
                {"SLURM_LOCALID", "0"},
                {"SLURM_NODEID", "0"},
                {"SLURMD_NODENAME", "node0"},
                {"SLURM_STEP_NODELIST", "node0"},
                {"SLURM_STEP_NUM_NODES", nodes},
                {"SLURM_STEP_NUM_TASKS", nodes}};
      case ScriptKind::k8s:
        if (job_.nodes == 1) return {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}};
        [[fallthrough]];
      case ScriptKind::jobset:
        return {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"JOB_COMPLETION_INDEX", "0"}};
      case ScriptKind::pbs:
        if (job_.nodes == 1) return {};
        return {{"OMPI_COMM_WORLD_RANK", "0"},
                {"OMPI_COMM_WORLD_SIZE", nodes},
                {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
    }
    return {};
  }

  const LaunchInputs& inputs_;
  Settings settings_;
  const KindRow& row_;
  const std::string& acc_;
  std::optional<ConfigText> config_;
  /// The number of workers over all nodes was given.
  bool is_counted_ = false;
  ScriptJob job_ = {};
};

}  // namespace

ScriptJob plan_script(const LaunchInputs& inputs, const std::string& acc, std::optional<ConfigText> config) {
  return ScriptPlanner(inputs, acc, std::move(config)).plan();
}

std::string job_script(const ScriptJob& job) {
  switch (job.kind) {
    case ScriptKind::slurm:
      return slurm_script(job);
    case ScriptKind::k8s:
      return indexed_job_manifest(job);
    case ScriptKind::jobset:
      return jobset_manifest(job);
    case ScriptKind::pbs:
      return pbs_script(job);
  }
  return {};
}

std::vector<std::string> script_notes(const ScriptJob& job, const Environment& environment) {
  std::vector<std::string> notes;
  if (job.may_use_gpus) {
    notes.emplace_back(
        "--print-script: no GPU is asked for, as this machine has none; --multi_gpu asks for one per worker");
  }
  if (environment.contains(kSecretVariable))
    notes.push_back(
        fmt::format("{} is not written into the script: give it to the job yourself", kSecretVariable));
  return notes;
}

}  // namespace acc::launcher
