// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/job_shape.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>

#include "acc/base/text.hpp"
#include "acc/plan/deepspeed.hpp"
#include "acc/plan/mpi.hpp"

namespace acc::launcher {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what, const std::string& hint = "") {
  throw Error({.kind = ErrorKind::usage, .what = what, .where = where, .hint = hint});
}

[[noreturn]] void fail_contradiction(const Settings& settings, std::string_view one, std::string_view other) {
  fail("",
       fmt::format("{} ({} = {}) and {} ({} = {}) contradict each other", settings.origin(one), one,
                   settings.text(one), settings.origin(other), other, settings.text(other)),
       "give one of them");
}

int to_count(std::int64_t number, const std::string& where, std::string_view what) {
  if (number < 1 || number > std::numeric_limits<int>::max()) {
    fail(where, fmt::format("{} must be at least 1, not {}", what, number));
  }
  return static_cast<int>(number);
}

struct MachineRange {
  int least = 1;
  int most = 1;
};

// torchrun's N or MIN:MAX.
MachineRange parse_nnodes(const Settings& settings) {
  const std::string text = settings.text("nnodes");
  const std::string& where = settings.origin("nnodes");
  const std::vector<std::string> parts = split(text, ':');
  const auto least = parse_python_integer(parts.front());
  const auto most = parse_python_integer(parts.back());
  if (parts.size() > 2 || !least || !most || *least < 1 || *most < *least) {
    fail(where, "'" + text + "' is not a number of machines", "as in 2, or MIN:MAX as in 1:4");
  }
  return {.least = to_count(*least, where, "the number of machines"),
          .most = to_count(*most, where, "the number of machines")};
}

// A flag that chooses the distributed_type.
struct Choice {
  std::string_view setting = {};
  std::string_view type = {};
};

// The flag that was typed; empty: none was. `--use_megatron_lm` may stand beside the others.
Choice chosen_type(const Settings& settings) {
  constexpr std::array kChoices = {Choice{"use_cpu", ""},
                                   Choice{"use_deepspeed", "DEEPSPEED"},
                                   Choice{"use_fsdp", "FSDP"},
                                   Choice{"use_megatron_lm", "MEGATRON_LM"},
                                   Choice{"multi_gpu", "MULTI_GPU"},
                                   Choice{"tpu", "XLA"}};
  const Choice* first = nullptr;
  const Choice* other = nullptr;
  Choice chosen;
  for (const Choice& choice : kChoices) {
    if (!settings.typed(choice.setting) || !settings.truth(choice.setting)) continue;
    if (chosen.type.empty()) chosen = choice;
    if (choice.setting == "use_megatron_lm") continue;
    (first == nullptr ? first : other) = &choice;
  }
  if (other != nullptr) {
    fail("",
         fmt::format("{} and {} exclude each other", settings.origin(first->setting),
                     settings.origin(other->setting)),
         "give one of them");
  }
  return chosen;
}

class Shaper {
 public:
  Shaper(const LaunchInputs& inputs, Settings& settings) : inputs_(inputs), settings_(settings) {
    gpus_ = static_cast<int>(visible_gpus(inputs.machine, inputs.environment).size());
  }

  JobShape decide() {
    decide_machines();
    if (inputs_.dialect == Dialect::torchrun) {
      shape_.launcher = "torchrun";
      shape_.nproc_per_node = settings_.given("nproc_per_node") ? parse_nproc() : 1;
      return std::move(shape_);
    }
    decide_type_asked();
    decide_processes();
    decide_type();
    decide_launcher();
    check_devices();
    record();
    return std::move(shape_);
  }

 private:
  void decide_machines() {
    shape_.num_machines =
        to_count(settings_.integer("num_machines"), settings_.origin("num_machines"), "num_machines");
    shape_.least_machines = shape_.num_machines;
    if (settings_.given("nnodes")) {
      const MachineRange nnodes = parse_nnodes(settings_);
      if (settings_.typed("num_machines") && nnodes.most != shape_.num_machines) {
        fail_contradiction(settings_, "nnodes", "num_machines");
      }
      shape_.num_machines = nnodes.most;
      shape_.least_machines = nnodes.least;
      settings_.set("num_machines", nnodes.most, settings_.origin("nnodes"));
    }
    decide_machine_rank();
  }

  // Only a static rendezvous obeys the rank; elsewhere nodes learn theirs, and this one is a guess.
  void decide_machine_rank() {
    const std::int64_t rank = settings_.integer("machine_rank");
    const bool below = rank >= 0 && rank < shape_.num_machines;
    if (!below && settings_.text("rdzv_backend") == "static" && !settings_.truth("standalone")) {
      fail(settings_.origin("machine_rank"),
           fmt::format("machine rank {} is not below the number of machines, {}", rank, shape_.num_machines));
    }
    shape_.machine_rank = below ? static_cast<int>(rank) : 0;
  }

  int parse_nproc() {
    const std::string text(trim(settings_.text("nproc_per_node")));
    const std::string& where = settings_.origin("nproc_per_node");
    if (const auto number = parse_python_integer(text))
      return to_count(*number, where, "the number of workers");
    if (text == "gpu" && gpus_ == 0)
      fail(where, "no GPU is visible on this machine", "`cpu` starts a worker per CPU");
    if (text == "gpu" || (text == "auto" && gpus_ > 0)) return gpus_;
    if (text == "cpu" || text == "auto") return inputs_.machine.online_cpus;
    fail(where, "'" + text + "' is not a number of workers", "a number, auto, gpu or cpu");
  }

  // What was asked for; empty: nothing was.
  void decide_type_asked() {
    const bool cpu = settings_.typed("use_cpu") && settings_.truth("use_cpu");
    const Choice chosen = chosen_type(settings_);
    if (cpu) {
      asked_.clear();
    } else if (!chosen.type.empty()) {
      asked_ = chosen.type;
      settings_.set("distributed_type", asked_, settings_.origin(chosen.setting));
    } else if (settings_.given("distributed_type")) {
      asked_ = settings_.text("distributed_type");
    }
    shape_.use_cpu = settings_.truth("use_cpu") || asked_ == "MULTI_CPU";
    sagemaker_ = settings_.text("compute_environment") == "AMAZON_SAGEMAKER";
  }

  void decide_processes() {
    const int machines = shape_.num_machines;
    if (settings_.given("nproc_per_node")) {
      shape_.nproc_per_node = parse_nproc();
      const std::int64_t total = std::int64_t{machines} * shape_.nproc_per_node;
      if (settings_.typed("num_processes") && settings_.integer("num_processes") != total) {
        fail_contradiction(settings_, "nproc_per_node", "num_processes");
      }
      settings_.set("num_processes", total, settings_.origin("nproc_per_node"));
      return;
    }
    if (!settings_.given("num_processes")) return derive_processes();
    const std::string& where = settings_.origin("num_processes");
    const int total = to_count(settings_.integer("num_processes"), where, "num_processes");
    if (total % machines != 0) {
      fail("",
           fmt::format("{} processes ({}) cannot be divided evenly among {} machines ({})", total, where,
                       machines, settings_.origin("num_machines")),
           "give a multiple");
    }
    shape_.nproc_per_node = total / machines;
    // accelerate takes a file's 1 here.
    if (total == 1 && settings_.typed("multi_gpu") && settings_.typed("num_processes") &&
        asked_ == "MULTI_GPU") {
      fail("--multi_gpu", "needs at least 2 processes, and --num_processes says 1");
    }
  }

  void derive_processes() {
    const bool one_process = asked_ == "NO" || shape_.use_cpu || sagemaker_ || (asked_.empty() && gpus_ == 0);
    if (asked_ == "MULTI_CPU" || (!one_process && gpus_ == 0)) {
      fail("num_processes", "is not given, and this machine has no GPUs to count", "give --num_processes");
    }
    shape_.nproc_per_node = one_process ? 1 : gpus_;
    const std::string origin = !one_process                        ? fmt::format("machine: {} GPUs", gpus_)
                               : asked_ == "NO" && !shape_.use_cpu ? "distributed_type NO"
                                                                   : "default";
    settings_.set("num_processes", std::int64_t{shape_.num_machines} * shape_.nproc_per_node, origin);
  }

  // A file that says NO beside a number of processes: accelerate, too, starts one.
  void take_one_process() {
    if (shape_.num_machines > 1) fail_contradiction(settings_, "distributed_type", "num_machines");
    shape_.notes.push_back(fmt::format("{}: distributed_type NO starts one process, not the {} of {}",
                                       settings_.origin("distributed_type"), shape_.nproc_per_node,
                                       settings_.origin("num_processes")));
    shape_.nproc_per_node = 1;
    settings_.set("num_processes", 1, "distributed_type NO");
  }

  void decide_type() {
    const bool several = std::int64_t{shape_.num_machines} * shape_.nproc_per_node > 1;
    if (asked_ == "NO" && several) {
      const bool typed = settings_.typed("num_processes") || settings_.typed("nproc_per_node");
      if (typed) {
        asked_.clear();
      } else {
        take_one_process();
      }
    }
    if (!asked_.empty()) {
      shape_.distributed_type = asked_;
      if (shape_.use_cpu && asked_ != "MULTI_CPU" && asked_ != "NO") shape_.use_cpu = false;
      return;
    }
    if (!several) return;
    // Workers that find neither a GPU nor the word "CPU" each believe to be alone (accelerate 1.15 lets
    // them).
    if (gpus_ == 0 && !shape_.use_cpu) {
      shape_.use_cpu = true;
      shape_.notes.emplace_back("no GPU is visible: the workers train on the CPU");
    }
    shape_.distributed_type = shape_.use_cpu ? "MULTI_CPU" : "MULTI_GPU";
  }

  void decide_launcher() {
    const std::string& type = shape_.distributed_type;
    if (sagemaker_) {
      shape_.launcher = "sagemaker";
    } else if (type == "NO" || type == "MULTI_CPU") {
      shape_.launcher = "simple";
    } else if (type == "XLA") {
      // accelerate takes a file's word for a pod only where the file chooses TPUs, too.
      const bool says_pod = settings_.typed("tpu_use_cluster") || !settings_.typed("tpu");
      shape_.launcher = says_pod && settings_.truth("tpu_use_cluster") ? "tpu-pod" : "tpu";
    } else {
      shape_.launcher = uses_deepspeed_command(shape_, settings_) ? "deepspeed" : "elastic";
    }
    shape_.delegated = shape_.launcher == "deepspeed" || type == "XLA" || uses_mpi(shape_, settings_);
    const bool alone = shape_.nproc_per_node == 1 && shape_.num_machines == 1;
    const bool torchrun_flags =
        settings_.given("nproc_per_node") || settings_.given("nnodes") || settings_.truth("standalone");
    shape_.sets_ranks = !shape_.delegated && (shape_.launcher != "simple" || !alone || torchrun_flags);
    if (sagemaker_) {
      fail(settings_.origin("compute_environment"),
           "SageMaker jobs are not started by acc, nor by accelerate 1.15",
           "`aws sagemaker create-training-job` or SageMaker's Python SDK starts them");
    }
    if (settings_.truth("use_parallelism_config") && type != "FSDP")
      fail(settings_.origin("use_parallelism_config"), "works with FSDP only", "add --use_fsdp");
    if (settings_.given("mpirun_hostfile") && !shape_.delegated)
      shape_.notes.emplace_back("mpirun_hostfile has no effect: only CPU jobs go through mpirun");
  }

  void check_devices() {
    if (shape_.delegated) return;
    const std::string& type = shape_.distributed_type;
    if (gpus_ == 0 && (type == "FSDP" || type == "MEGATRON_LM" || type == "DEEPSPEED")) {
      shape_.problems.push_back({.what = type + ", but no GPU is visible on this machine",
                                 .where = settings_.origin("distributed_type"),
                                 .hint = "without one, each worker would train alone"});
    }
    if (type != "MULTI_GPU") return;
    const std::string ids = settings_.text("gpu_ids");
    const bool named = !ids.empty() && ids != "all";
    const int offered = named ? static_cast<int>(split(ids, ',').size()) : gpus_;
    if (named && offered < 2 && shape_.num_machines == 1 && shape_.nproc_per_node > 1) {
      fail(settings_.origin("gpu_ids"),
           fmt::format("gpu_ids names one GPU, and {} processes are to share it", shape_.nproc_per_node),
           "name one per process, or `all`");
    }
    if (gpus_ == 0) {
      shape_.problems.push_back({.what = "MULTI_GPU, but no GPU is visible on this machine",
                                 .where = settings_.origin("distributed_type"),
                                 .hint = "--cpu trains on the CPU"});
    } else if (offered < shape_.nproc_per_node) {
      shape_.notes.push_back(fmt::format("{} workers share {} GPUs", shape_.nproc_per_node, offered));
    }
  }

  void record() {
    if (settings_.text("distributed_type") != shape_.distributed_type) {
      settings_.set("distributed_type", shape_.distributed_type, "derived from num_processes and devices");
    }
    if (settings_.truth("use_cpu") != shape_.use_cpu) {
      settings_.set("use_cpu", shape_.use_cpu, "distributed_type " + shape_.distributed_type);
    }
  }

  const LaunchInputs& inputs_;
  Settings& settings_;
  int gpus_ = 0;
  std::string asked_ = {};
  bool sagemaker_ = false;
  JobShape shape_ = {};
};

}  // namespace

JobShape decide_shape(const LaunchInputs& inputs, Settings& settings) {
  return Shaper(inputs, settings).decide();
}

}  // namespace acc::launcher
