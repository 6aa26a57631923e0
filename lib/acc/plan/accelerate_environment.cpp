// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/accelerate_environment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "acc/base/text.hpp"
#include "acc/plan/command_line.hpp"
#include "acc/plan/deepspeed.hpp"
#include "acc/plan/other_launchers.hpp"
#include "acc/plan/settings.hpp"
#include "acc/plan/visible_devices.hpp"

namespace acc::launcher {
namespace {

// Whether torch.compile is requested. accelerate does not pass its variables to DeepSpeed workers; acc
// does.
bool compiles(const Settings& settings) {
  return settings[key::dynamo_backend] != "NO";
}

}  // namespace

Environment accelerate_environment(const LaunchInputs& inputs, const JobShape& shape,
                                   const Settings& settings) {
  if (shape.distributed_type == DistributedType::xla) return tpu_environment(settings);
  const bool simple = shape.launcher == Launcher::simple;
  const bool deepspeed = shape.distributed_type == DistributedType::deepspeed && !simple;
  Environment environment;
  if (simple || shape.use_cpu)
    environment.set("ACCELERATE_USE_CPU", truth_text(shape.use_cpu, TruthStyle::python));
  if (shape.use_cpu) {
    environment.set("KMP_AFFINITY", "granularity=fine,compact,1,0");
    environment.set("KMP_BLOCKTIME", "1");
  }
  if (settings[key::debug]) environment.set("ACCELERATE_DEBUG_MODE", "true");
  const std::string gpu_ids = settings[key::gpu_ids];
  if (selects_devices(gpu_ids)) {
    const std::string mask(device_mask_name(shape.distributed_type));
    const std::string origin = settings.origin(key::gpu_ids);
    const std::string devices = select_devices(gpu_ids, mask, inputs.environment.find(mask), origin);
    if (mask == device_mask_name(DistributedType::multi_gpu) && !shape.use_cpu && !shape.delegated)
      require_gpus(devices, inputs.machine, origin);
    environment.set(mask, devices);
  }
  environment.set("ACCELERATE_MIXED_PRECISION", settings[key::mixed_precision]);
  if (settings[key::mixed_precision] == "fp8") environment.overlay(fp8_environment(settings));
  if (!deepspeed || compiles(settings))
    environment.overlay(section_variables(settings, key::dynamo_config, TruthStyle::python));
  if (settings[key::enable_cpu_affinity]) environment.set("ACCELERATE_CPU_AFFINITY", "1");
  if (simple) {
    if (shape.delegated) environment.overlay(mpi_environment(shape, settings));
    return environment;
  }
  if (deepspeed) environment.overlay(deepspeed_environment(inputs, settings));
  if (shape.distributed_type == DistributedType::fsdp) environment.overlay(fsdp_environment(settings));
  // --use_megatron_lm may be combined with --use_fsdp; the library then uses Megatron-LM.
  const bool megatron =
      shape.distributed_type == DistributedType::megatron_lm || settings[key::use_megatron_lm];
  if (megatron && !deepspeed) environment.overlay(megatron_environment(settings));
  if (uses_parallelism(settings)) environment.overlay(parallelism_environment(settings));
  environment.overlay(peer_to_peer_environment(inputs));
  return environment;
}

namespace {

// What this process inherits is then the environment of a worker, which starts a job of its own.
bool is_in_worker(const Environment& environment) {
  return environment.contains("LOCAL_RANK") || (environment.contains("ACCELERATE_MIXED_PRECISION") &&
                                                environment.contains("ACCELERATE_DYNAMO_BACKEND"));
}

bool same_value(const std::string& one, const std::string& other) {
  return to_lower(one) == to_lower(other) ||
         (parse_truth(one).has_value() && parse_truth(one) == parse_truth(other));
}

}  // namespace

std::vector<std::string> notes_on_replaced(const LaunchInputs& inputs, const Settings& settings,
                                           const Environment& environment) {
  if (is_in_worker(inputs.environment)) return {};
  std::vector<std::string> notes;
  for (const SettingSpec& spec : schema()) {
    if (spec.environment.empty() || settings.given(spec.id)) continue;
    const auto inherited = inputs.environment.find(spec.environment);
    const auto value = environment.find(spec.environment);
    if (!inherited || inherited->empty() || !value || same_value(*inherited, *value)) continue;
    const std::string way = spec.flags.empty() ? std::string(spec.name) : spellings(spec.flags.front());
    notes.push_back(fmt::format("{}={} has no effect: the workers get {}, the default; {} changes it",
                                spec.environment, shorten(*inherited), *value, way));
  }
  return notes;
}

Environment thread_environment(const LaunchInputs& inputs, const JobShape& shape, Settings& settings) {
  constexpr auto kThreads = key::num_cpu_threads_per_process;
  const std::string name(row_of(kThreads).environment);
  if (settings.given(kThreads)) return Environment{{name, settings.text(kThreads)}};
  const auto inherited = inputs.environment.find(name);
  // torchrun keeps any inherited value; for accelerate an empty value, 0 and numbers below it mean unset.
  const bool is_set = inherited && !inherited->empty() && parse_integer(*inherited).value_or(1) > 0;
  if (is_set) settings.set(kThreads, *inherited, name);
  if (is_set && inputs.dialect == Dialect::launch) return Environment{{name, *inherited}};
  if (inputs.dialect == Dialect::torchrun) {
    if (inherited) return {};
    if (shape.nproc_per_node == 1) return {};
    settings.set(kThreads, 1, "torchrun's default for several workers");
    return Environment{{name, "1"}};
  }
  const int workers = shape.nproc_per_node * shape.copies_on_machine;
  const int cores = inputs.allowed_cores();
  const int threads = std::max(1, cores / workers);
  settings.set(kThreads, threads,
               fmt::format("machine: {}, {}", pluralize(static_cast<std::uint64_t>(cores), "core"),
                           pluralize(static_cast<std::uint64_t>(workers), "worker")));
  return Environment{{name, fmt::to_string(threads)}};
}

}  // namespace acc::launcher
