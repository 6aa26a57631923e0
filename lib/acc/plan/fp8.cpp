// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/fp8.hpp"

#include <array>

#include "acc/plan/section_variables.hpp"

namespace acc::launcher {
namespace {

// accelerate's command line turns these words into numbers, and its defaults too; those of a file stay truth
// values.
std::string converted(bool value, bool from_file) {
  if (from_file) return truth_text(value, TruthStyle::python);
  return value ? "1" : "0";
}

}  // namespace

Environment fp8_environment(const Settings& settings) {
  Environment environment = section_variables(settings, "fp8_config", TruthStyle::python);
  for (const char* name : {"fp8_enable_fsdp_float8_all_gather", "fp8_pad_inner_dim"}) {
    const bool from_file = settings.given(name) && !settings.typed(name);
    environment.set(std::string(find_setting(name)->environment), converted(settings.truth(name), from_file));
  }
  constexpr std::array kProducts = {"FPROP", "DGRAD", "WGRAD"};
  const Value& overrides = settings["fp8_override_linear_precision"].value;
  for (std::size_t i = 0; i < kProducts.size(); ++i) {
    environment.set(std::string("ACCELERATE_FP8_OVERRIDE_") + kProducts[i],
                    converted(overrides.at(i).get<bool>(), !settings.typed("fp8_override_linear_precision")));
  }
  return environment;
}

}  // namespace acc::launcher
