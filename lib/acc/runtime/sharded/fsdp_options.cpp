// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/fsdp_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc::detail {
namespace {

[[noreturn]] void refuse(std::string_view where, std::string what, std::string hint = {}) {
  throw Error({.what = std::move(what), .where = std::string(where), .hint = std::move(hint)});
}

bool truth(const Environment& environment, std::string_view name, bool default_value = false) {
  const auto text = environment.find(name);
  if (!text || text->empty()) return default_value;
  if (const auto value = parse_truth(*text)) return *value;
  refuse(name, fmt::format("must be true or false, not '{}'", *text));
}

// Upper case; empty if the variable is not set.
std::string word(const Environment& environment, std::string_view name) {
  return to_upper(trim(environment.get(name)));
}

std::int64_t version_of(const Environment& environment) {
  const std::string text = environment.get("FSDP_VERSION", "1");
  const auto version = parse_integer(text);
  if (!version || *version < 1 || *version > 2)
    refuse("FSDP_VERSION", fmt::format("must be 1 or 2, not '{}'", text));
  return *version;
}

// PyTorch's numbers of the strategies are accepted, too.
constexpr std::array<std::string_view, 5> kStrategies = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD",
                                                         "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"};

std::string_view strategy_of(const Environment& environment) {
  const bool named = environment.contains("FSDP_SHARDING_STRATEGY");
  const std::string_view variable = named ? "FSDP_SHARDING_STRATEGY" : "FSDP_RESHARD_AFTER_FORWARD";
  const std::string text = word(environment, variable);
  if (text.empty()) return kStrategies[0];
  if (const auto number = parse_integer(text); number && *number >= 1 && *number <= 5)
    return kStrategies[static_cast<std::size_t>(*number - 1)];
  const auto* const strategy = std::ranges::find(kStrategies, std::string_view(text));
  if (strategy == kStrategies.end())
    refuse(variable, fmt::format("'{}' is not a strategy", text),
           "FULL_SHARD, SHARD_GRAD_OP and NO_SHARD are, in C++");
  if (strategy->starts_with("HYBRID"))
    refuse(variable, fmt::format("{} is not there in C++", *strategy), "use FULL_SHARD or SHARD_GRAD_OP");
  return *strategy;
}

void refuse_what_is_not_there(const Environment& environment) {
  if (truth(environment, "FSDP_OFFLOAD_PARAMS"))
    refuse("FSDP_OFFLOAD_PARAMS", "parameters are not offloaded in C++", "leave fsdp_offload_params off");
  if (truth(environment, "FSDP_ACTIVATION_CHECKPOINTING_OFFLOAD"))
    refuse("FSDP_ACTIVATION_CHECKPOINTING_OFFLOAD", "what is computed again is not offloaded in C++",
           "leave fsdp_activation_checkpointing_offload off");
}

// PyTorch's numbers of the kinds are accepted, too.
StateDictType state_dict_type_of(const Environment& environment, std::int64_t version) {
  constexpr std::string_view kVariable = "FSDP_STATE_DICT_TYPE";
  const std::string text = word(environment, kVariable);
  if (text.empty()) return version == 2 ? StateDictType::sharded : StateDictType::full;
  if (text == "FULL_STATE_DICT" || text == "1") return StateDictType::full;
  if (text == "SHARDED_STATE_DICT" || text == "3") return StateDictType::sharded;
  if (text == "LOCAL_STATE_DICT" || text == "2")
    refuse(kVariable, "LOCAL_STATE_DICT is not there in C++",
           "use SHARDED_STATE_DICT or FULL_STATE_DICT, which any number of processes can load");
  refuse(kVariable, fmt::format("'{}' is not a kind of state dict", text),
         "SHARDED_STATE_DICT and FULL_STATE_DICT are, in C++");
}

void take_wrap_policy(const Environment& environment, FsdpOptions& options) {
  const std::string policy = word(environment, "FSDP_AUTO_WRAP_POLICY");
  if (policy == "TRANSFORMER_BASED_WRAP") {
    for (const std::string& name : split(environment.get("FSDP_TRANSFORMER_CLS_TO_WRAP"), ',')) {
      if (const std::string_view trimmed = trim(name); !trimmed.empty())
        options.transformer_cls_to_wrap.emplace_back(trimmed);
    }
    if (options.transformer_cls_to_wrap.empty())
      refuse("FSDP_TRANSFORMER_CLS_TO_WRAP", "names no class, and a C++ model has no list of its own",
             "give --fsdp_transformer_layer_cls_to_wrap, as in Block");
  } else if (policy == "SIZE_BASED_WRAP") {
    const std::string text = environment.get("FSDP_MIN_NUM_PARAMS", "0");
    const auto number = parse_integer(text);
    if (!number || *number < 1)
      refuse("FSDP_MIN_NUM_PARAMS", fmt::format("must be at least 1, not '{}'", text));
    options.min_num_params = *number;
  } else if (!policy.empty() && policy != "NO_WRAP") {
    refuse("FSDP_AUTO_WRAP_POLICY", fmt::format("'{}' is not a policy", policy),
           "TRANSFORMER_BASED_WRAP, SIZE_BASED_WRAP and NO_WRAP are");
  }
}

}  // namespace

std::optional<FsdpOptions> fsdp_options_of(const Environment& environment) {
  if (!truth(environment, "ACCELERATE_USE_FSDP")) return {};
  FsdpOptions options;
  const std::int64_t version = version_of(environment);
  if (version == 2) {
    options.reshard_after_forward = truth(environment, "FSDP_RESHARD_AFTER_FORWARD", true);
  } else {
    const std::string_view strategy = strategy_of(environment);
    if (strategy == "NO_SHARD") return {};
    options.reshard_after_forward = strategy == "FULL_SHARD";
  }
  refuse_what_is_not_there(environment);
  options.state_dict_type = state_dict_type_of(environment, version);
  take_wrap_policy(environment, options);
  options.prefetch = word(environment, "FSDP_BACKWARD_PREFETCH") != "NO_PREFETCH";
  options.ignored_modules = environment.get("FSDP_IGNORED_MODULES");
  require_valid(options);
  return options;
}

bool fsdp_computes_activations_again(const Environment& environment) {
  return truth(environment, "ACCELERATE_USE_FSDP") && truth(environment, "FSDP_ACTIVATION_CHECKPOINTING");
}

void require_valid(const FsdpOptions& options) {
  if (options.min_num_params < 0)
    refuse("min_num_params", fmt::format("must be at least 0, not {}", options.min_num_params));
  if (options.min_num_params > 0 && !options.transformer_cls_to_wrap.empty())
    refuse("FsdpOptions", "modules are chosen by class or by size, not by both",
           "set transformer_cls_to_wrap or min_num_params");
  try {
    static_cast<void>(std::regex(options.ignored_modules));
  } catch (const std::regex_error&) {
    refuse("ignored_modules", fmt::format("'{}' is not a regular expression", options.ignored_modules));
  }
}

}  // namespace acc::detail
