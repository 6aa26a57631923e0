// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "acc/base/text.hpp"
#include "acc/base/wrap.hpp"
#include "acc/config/typed_value.hpp"
#include "acc/plan/command_line.hpp"

namespace acc::launcher {
namespace {

std::string value_name(const SettingSpec& spec, const Flag& flag) {
  if (flag.means) return spec.type == ValueType::boolean ? "" : "[=" + std::string(spec.allowed.back()) + "]";
  if (is_number(spec) && !spec.allowed.empty())
    return " {N," + join({spec.allowed.begin(), spec.allowed.end()}, ",") + "}";
  if (!spec.allowed.empty() && spec.allowed.size() <= 4) {
    return " {" + join({spec.allowed.begin(), spec.allowed.end()}, ",") + "}";
  }
  constexpr std::size_t kLongest = 20;
  switch (spec.type) {
    case ValueType::integer:
    case ValueType::number:
      return " N";
    case ValueType::boolean:
      return " {true,false}";
    default:
      return " " + (spec.name.size() > kLongest ? "VALUE" : to_upper(spec.name));
  }
}

std::string with_default(const SettingSpec& spec) {
  std::string text(spec.help);
  if (spec.otherwise != "null" && spec.otherwise != "false" && spec.otherwise != "{}")
    text += fmt::format(" Default: {}.", spec.otherwise);
  return text;
}

// One flag with its help, a line or more; empty when it does not exist here.
std::string setting_help(const SettingSpec& spec, Dialect dialect, std::size_t width, bool all) {
  const std::string synopsis = flag_synopsis(spec, dialect);
  if (synopsis.empty()) return "";
  return help_entry(synopsis, all ? flag_description(spec) : with_default(spec), width);
}

// Headings of the families: a job trains by few of them.
constexpr std::array kFamilies = {"torch.compile (dynamo)",
                                  "FSDP",
                                  "DeepSpeed",
                                  "Megatron-LM",
                                  "Parallel dimensions",
                                  "FP8",
                                  "MPI",
                                  "TPU",
                                  "SageMaker"};

bool is_family(std::string_view group) {
  return std::ranges::find(kFamilies, group) != kFamilies.end();
}

bool is_shown(std::string_view group, const HelpScope& scope) {
  return scope.all || !is_family(group) || std::ranges::find(scope.families, group) != scope.families.end();
}

}  // namespace

HelpScope help_scope(const CommandLine& command_line) {
  HelpScope scope{.all = command_line.help_all};
  const auto typed = [&](std::string_view name) { return command_line.flags.contains(name); };
  struct Switch {
    std::string_view setting, family;
  };
  constexpr std::array kSwitches = {Switch{"use_fsdp", "FSDP"}, Switch{"use_deepspeed", "DeepSpeed"},
                                    Switch{"use_megatron_lm", "Megatron-LM"},
                                    Switch{"use_parallelism_config", "Parallel dimensions"},
                                    Switch{"tpu", "TPU"}};
  for (const Switch& one : kSwitches) {
    if (typed(one.setting)) scope.families.push_back(one.family);
  }
  // A flag of a family asks for its family.
  for (const SettingSpec& spec : schema()) {
    const bool asks = is_family(spec.group) && typed(spec.name);
    if (asks && std::ranges::find(scope.families, spec.group) == scope.families.end())
      scope.families.push_back(spec.group);
  }
  return scope;
}

std::vector<std::string_view> help_groups(Dialect dialect) {
  std::vector<std::string_view> groups;
  for (const SettingSpec& spec : schema()) {
    const bool exists = !flag_synopsis(spec, dialect).empty();
    if (exists && !spec.group.empty() && std::ranges::find(groups, spec.group) == groups.end())
      groups.push_back(spec.group);
  }
  return groups;
}

std::string flag_synopsis(const SettingSpec& spec, Dialect dialect) {
  std::vector<std::string> flags;
  const Flag* last = nullptr;
  for (const Flag& flag : spec.flags) {
    if (!exists_in(flag, dialect)) continue;
    flags.emplace_back(flag.spelling);
    last = &flag;
  }
  return last == nullptr ? "" : join(flags, ", ") + value_name(spec, *last);
}

std::string flag_description(const SettingSpec& spec) {
  std::vector<std::string> places;
  if (spec.in_file && !spec.section.empty())
    places.push_back(fmt::format("key {}.{}", spec.section, file_key(spec)));
  if (spec.in_file && spec.section.empty()) places.push_back(fmt::format("key {}", file_key(spec)));
  if (!spec.pet.empty()) places.push_back(fmt::format("variable {}", spec.pet));
  if (!spec.environment.empty()) places.push_back(fmt::format("workers see {}", spec.environment));
  return with_default(spec) + (places.empty() ? "" : " [" + join(places, "; ") + "]");
}

std::string launch_help(Dialect dialect, std::string_view program, std::size_t width,
                        const HelpScope& scope) {
  std::string text = fmt::format("usage: {} [options] PROGRAM [ARGUMENTS ...]\n\n", program);
  text += wrap(
      dialect == Dialect::launch
          ? "Starts and guards one worker per device. Takes the flags of accelerate launch and of torchrun, "
            "spelt with - or _."
          : "Starts and guards workers by torchrun's rules: no config file is read.",
      0, width);
  text += '\n';
  std::vector<std::string> hidden;
  for (const std::string_view group : help_groups(dialect)) {
    if (!is_shown(group, scope)) {
      hidden.emplace_back(group);
      continue;
    }
    text += fmt::format("\n{}:\n", group);
    for (const SettingSpec& spec : schema()) {
      if (spec.group == group) text += setting_help(spec, dialect, width, scope.all);
    }
  }
  if (scope.all) return text;
  const std::string more = hidden.empty() ? "" : fmt::format(", and the flags of {}", join(hidden, ", "));
  return text + "\n" + wrap(fmt::format("--help-all shows keys and variables{}.", more), 0, width) + "\n";
}

}  // namespace acc::launcher
