// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/parallelism.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "acc/plan/section_variables.hpp"

namespace acc::launcher {

bool uses_parallelism(const Settings& settings) {
  if (settings.truth("use_parallelism_config")) return true;
  constexpr std::array<std::string_view, 6> kChoices = {"multi_gpu",     "tpu",      "tpu_use_cluster",
                                                        "use_deepspeed", "use_fsdp", "use_megatron_lm"};
  const bool chosen = std::ranges::any_of(
      kChoices, [&](std::string_view name) { return settings.typed(name) && settings.truth(name); });
  const Value& section = settings["parallelism_config"].value;
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

}  // namespace acc::launcher
