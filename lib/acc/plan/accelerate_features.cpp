// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/accelerate_environment.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {
namespace {

// Whether version 1 frees the parameters after the forward pass, which is all that version 2 asks.
bool frees_parameters(std::string_view strategy) {
  return strategy == "FULL_SHARD" || strategy == "HYBRID_SHARD";
}

// Version 1 reads the strategy alone.
void check_version_1(const Settings& settings) {
  const TruthOrText reshard = settings[key::fsdp_reshard_after_forward];
  if (reshard != TruthOrText(false) || !frees_parameters(settings[key::fsdp_sharding_strategy])) return;
  throw Error(
      {.what = "fsdp_reshard_after_forward false has no effect in version 1, the default of fsdp_version",
       .where = settings.origin(key::fsdp_reshard_after_forward),
       .hint = "fsdp_version 2 has it; in version 1 it is fsdp_sharding_strategy SHARD_GRAD_OP"});
}

// Version 2 reads fsdp_reshard_after_forward alone.
void check_strategy_in_version_2(const Settings& settings, bool reshard) {
  if (!settings.given(key::fsdp_sharding_strategy)) return;
  const std::string strategy = settings[key::fsdp_sharding_strategy];
  const bool shards = strategy != "NO_SHARD";
  if (shards && frees_parameters(strategy) == reshard) return;
  throw Error(
      {.what = fmt::format("version 2 of FSDP has no fsdp_sharding_strategy {}: it shards everything, and "
                           "fsdp_reshard_after_forward is {}",
                           strategy, reshard),
       .where = settings.origin(key::fsdp_sharding_strategy),
       .hint =
           shards ? "leave it out; `acc to-fsdp2` rewrites a file of version 1" : "fsdp_version 1 has it"});
}

void check(const Settings& settings) {
  if (settings[key::fsdp_cpu_ram_efficient_loading] && !settings[key::fsdp_sync_module_states]) {
    throw Error({.what =
                     "fsdp_cpu_ram_efficient_loading needs fsdp_sync_module_states: only the first process "
                     "loads the model",
                 .where = settings.origin(key::fsdp_sync_module_states),
                 .hint = "turn both on, or both off"});
  }
  if (settings[key::fsdp_version] == 1) return check_version_1(settings);
  const TruthOrText reshard = settings[key::fsdp_reshard_after_forward];
  if (const auto* strategy = std::get_if<std::string>(&reshard)) {
    throw Error(
        {.what = fmt::format("fsdp_reshard_after_forward is true or false in version 2, not '{}'", *strategy),
         .where = settings.origin(key::fsdp_reshard_after_forward),
         .hint = "`acc to-fsdp2` rewrites a file of version 1"});
  }
  check_strategy_in_version_2(settings, std::get<bool>(reshard));
  if (settings[key::fsdp_state_dict_type] == "LOCAL_STATE_DICT") {
    throw Error({.what = "version 2 of FSDP has no LOCAL_STATE_DICT",
                 .where = settings.origin(key::fsdp_state_dict_type),
                 .hint = "SHARDED_STATE_DICT or FULL_STATE_DICT"});
  }
}

}  // namespace

Environment fsdp_environment(const Settings& settings) {
  check(settings);
  Environment environment = section_variables(settings, key::fsdp_config, TruthStyle::lower);
  environment.set("ACCELERATE_USE_FSDP", "true");
  const TruthOrText reshard = settings[key::fsdp_reshard_after_forward];
  const auto* strategy = std::get_if<std::string>(&reshard);
  if (strategy == nullptr) return environment;
  if (!settings.given(key::fsdp_sharding_strategy)) environment.set("FSDP_SHARDING_STRATEGY", *strategy);
  environment.set("FSDP_RESHARD_AFTER_FORWARD", to_lower(*strategy));
  return environment;
}

namespace {

// accelerate converts these flags and their defaults to numbers, but leaves booleans of a config file as
// they are.
std::string converted(bool value, bool from_file) {
  if (from_file) return truth_text(value, TruthStyle::python);
  return value ? "1" : "0";
}

}  // namespace

Environment fp8_environment(const Settings& settings) {
  Environment environment = section_variables(settings, key::fp8_config, TruthStyle::python);
  for (const SettingKey<bool> one : {key::fp8_enable_fsdp_float8_all_gather, key::fp8_pad_inner_dim}) {
    const bool from_file = settings.given(one) && !settings.is_explicit(one);
    environment.set(std::string(row_of(one).environment), converted(settings[one], from_file));
  }
  constexpr std::array kProducts = {"FPROP", "DGRAD", "WGRAD"};
  const Truths overrides = settings[key::fp8_override_linear_precision];
  for (std::size_t i = 0; i < kProducts.size(); ++i) {
    environment.set(std::string("ACCELERATE_FP8_OVERRIDE_") + kProducts[i],
                    converted(overrides.at(i), !settings.is_explicit(key::fp8_override_linear_precision)));
  }
  return environment;
}

Environment megatron_environment(const Settings& settings) {
  Environment environment = section_variables(settings, key::megatron_lm_config, TruthStyle::python);
  for (const SettingSpec& spec : schema()) {
    // accelerate's command line treats switches without a default as text, which is lower-case `true`.
    const bool text = spec.section == row_of(key::megatron_lm_config).name &&
                      spec.type == ValueType::boolean && default_value(spec).is_null();
    if (text && settings.is_explicit(spec.id))
      environment.set(std::string(spec.environment), variable_text(settings, spec, TruthStyle::lower));
  }
  environment.set("ACCELERATE_USE_MEGATRON_LM", "true");
  return environment;
}

bool uses_parallelism(const Settings& settings) {
  if (settings[key::use_parallelism_config]) return true;
  constexpr std::array kChoices = {key::multi_gpu,     key::tpu,      key::tpu_use_cluster,
                                   key::use_deepspeed, key::use_fsdp, key::use_megatron_lm};
  const bool chosen = std::ranges::any_of(
      kChoices, [&](SettingKey<bool> choice) { return settings.is_explicit(choice) && settings[choice]; });
  return !chosen && !settings[key::parallelism_config].keys.empty();
}

Environment parallelism_environment(const Settings& settings) {
  Environment environment = section_variables(settings, key::parallelism_config, TruthStyle::python);
  environment.set("ACCELERATE_USE_PARALLELISM_CONFIG", "true");
  if (settings[key::parallelism_config_cp_size] <= 1)
    environment.erase("PARALLELISM_CONFIG_CP_COMM_STRATEGY");
  if (settings[key::parallelism_config_sp_size] <= 1) {
    for (const char* name : {"SP_SEQ_LENGTH", "SP_SEQ_LENGTH_IS_VARIABLE", "SP_ATTN_IMPLEMENTATION"})
      environment.erase(std::string("PARALLELISM_CONFIG_") + name);
  } else if (!environment.contains("PARALLELISM_CONFIG_SP_SEQ_LENGTH")) {
    environment.set("PARALLELISM_CONFIG_SP_SEQ_LENGTH", "None");
  }
  return environment;
}

namespace {

bool is_older(std::string_view version, std::string_view other) {
  const auto numbers = [](std::string_view text) {
    std::vector<std::int64_t> result;
    for (const std::string& part : split(text, '.')) result.push_back(parse_integer(part).value_or(0));
    return result;
  };
  return numbers(version) < numbers(other);
}

}  // namespace

Environment peer_to_peer_environment(const LaunchInputs& inputs) {
  const Machine& machine = inputs.machine;
  const bool affected = std::ranges::any_of(
      machine.gpus, [](const Gpu& gpu) { return gpu.name.find("RTX 40") != std::string::npos; });
  if (machine.gpus.size() < 2 || !affected || machine.driver_version.empty() ||
      !is_older(machine.driver_version, "550.40.07"))
    return {};
  Environment environment;
  for (const char* name : {"NCCL_P2P_DISABLE", "NCCL_IB_DISABLE"}) {
    if (!inputs.environment.contains(name)) environment.set(name, "1");
  }
  return environment;
}

}  // namespace acc::launcher
