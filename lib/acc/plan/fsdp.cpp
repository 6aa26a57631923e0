// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/fsdp.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/section_variables.hpp"

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
  const Value& reshard = settings["fsdp_reshard_after_forward"].value;
  if (!reshard.is_string()) return environment;
  if (!settings.given("fsdp_sharding_strategy"))
    environment.set("FSDP_SHARDING_STRATEGY", reshard.get<std::string>());
  environment.set("FSDP_RESHARD_AFTER_FORWARD", to_lower(reshard.get<std::string>()));
  return environment;
}

}  // namespace acc::launcher
