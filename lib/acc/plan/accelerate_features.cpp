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

void check(const Settings& settings) {
  if (settings.truth("fsdp_cpu_ram_efficient_loading") && !settings.truth("fsdp_sync_module_states")) {
    throw Error({.what =
                     "fsdp_cpu_ram_efficient_loading needs fsdp_sync_module_states: only the first process "
                     "loads the model",
                 .where = settings.origin("fsdp_sync_module_states"),
                 .hint = "turn both on, or both off"});
  }
  if (settings.integer("fsdp_version") == 1) return;
  if (settings["fsdp_reshard_after_forward"].value.is_string()) {
    throw Error({.what = fmt::format("fsdp_reshard_after_forward is true or false in version 2, not '{}'",
                                     settings.text("fsdp_reshard_after_forward")),
                 .where = settings.origin("fsdp_reshard_after_forward"),
                 .hint = "`acc to-fsdp2` rewrites a file of version 1"});
  }
  if (settings.text("fsdp_state_dict_type") == "LOCAL_STATE_DICT") {
    throw Error({.what = "version 2 of FSDP has no LOCAL_STATE_DICT",
                 .where = settings.origin("fsdp_state_dict_type"),
                 .hint = "SHARDED_STATE_DICT or FULL_STATE_DICT"});
  }
}

}  // namespace

Environment fsdp_environment(const Settings& settings) {
  check(settings);
  Environment environment = section_variables(settings, "fsdp_config", TruthStyle::lower);
  environment.set("ACCELERATE_USE_FSDP", "true");
  const Value reshard = settings["fsdp_reshard_after_forward"].value;
  if (!reshard.is_string()) return environment;
  if (!settings.given("fsdp_sharding_strategy"))
    environment.set("FSDP_SHARDING_STRATEGY", reshard.get<std::string>());
  environment.set("FSDP_RESHARD_AFTER_FORWARD", to_lower(reshard.get<std::string>()));
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
  Environment environment = section_variables(settings, "fp8_config", TruthStyle::python);
  for (const char* name : {"fp8_enable_fsdp_float8_all_gather", "fp8_pad_inner_dim"}) {
    const bool from_file = settings.given(name) && !settings.is_explicit(name);
    environment.set(std::string(find_setting(name)->environment), converted(settings.truth(name), from_file));
  }
  constexpr std::array kProducts = {"FPROP", "DGRAD", "WGRAD"};
  const Value overrides = settings["fp8_override_linear_precision"].value;
  for (std::size_t i = 0; i < kProducts.size(); ++i) {
    environment.set(
        std::string("ACCELERATE_FP8_OVERRIDE_") + kProducts[i],
        converted(overrides.at(i).get<bool>(), !settings.is_explicit("fp8_override_linear_precision")));
  }
  return environment;
}

Environment megatron_environment(const Settings& settings) {
  Environment environment = section_variables(settings, "megatron_lm_config", TruthStyle::python);
  for (const SettingSpec& spec : schema()) {
    // accelerate's command line treats switches without a default as text, which is lower-case `true`.
    const bool text = spec.section == "megatron_lm_config" && spec.type == ValueType::boolean &&
                      default_value(spec).is_null();
    if (text && settings.is_explicit(spec.name))
      environment.set(std::string(spec.environment), variable_text(settings, spec, TruthStyle::lower));
  }
  environment.set("ACCELERATE_USE_MEGATRON_LM", "true");
  return environment;
}

bool uses_parallelism(const Settings& settings) {
  if (settings.truth("use_parallelism_config")) return true;
  constexpr std::array<std::string_view, 6> kChoices = {"multi_gpu",     "tpu",      "tpu_use_cluster",
                                                        "use_deepspeed", "use_fsdp", "use_megatron_lm"};
  const bool chosen = std::ranges::any_of(
      kChoices, [&](std::string_view name) { return settings.is_explicit(name) && settings.truth(name); });
  const Value section = settings["parallelism_config"].value;
  return !chosen && section.is_object() && !section.empty();
}

Environment parallelism_environment(const Settings& settings) {
  Environment environment = section_variables(settings, "parallelism_config", TruthStyle::python);
  environment.set("ACCELERATE_USE_PARALLELISM_CONFIG", "true");
  if (settings.integer("parallelism_config_cp_size") <= 1)
    environment.erase("PARALLELISM_CONFIG_CP_COMM_STRATEGY");
  if (settings.integer("parallelism_config_sp_size") <= 1) {
    for (const char* name : {"SP_SEQ_LENGTH", "SP_SEQ_LENGTH_IS_VARIABLE", "SP_ATTN_IMPLEMENTATION"})
      environment.erase(std::string("PARALLELISM_CONFIG_") + name);
  } else if (!environment.contains("PARALLELISM_CONFIG_SP_SEQ_LENGTH")) {
    environment.set("PARALLELISM_CONFIG_SP_SEQ_LENGTH", "None");
  }
  return environment;
}

namespace {

bool is_older(std::string_view version, std::string_view than) {
  const auto numbers = [](std::string_view text) {
    std::vector<std::int64_t> result;
    for (const std::string& part : split(text, '.')) result.push_back(parse_integer(part).value_or(0));
    return result;
  };
  return numbers(version) < numbers(than);
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
