// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "acc/base/text.hpp"
#include "acc/config/conversion.hpp"
#include "acc/plan/command_line.hpp"

namespace acc::launcher {

namespace {

std::string value_name(const SettingSpec& spec, const Flag& flag) {
  if (!flag.needs_argument())
    return spec.type == ValueType::boolean ? "" : "[=" + std::string(spec.allowed.back()) + "]";
  if (is_number(spec) && !std::empty(spec.allowed))
    return " {N," + join({spec.allowed.begin(), spec.allowed.end()}, ",") + "}";
  if (!std::empty(spec.allowed) && spec.allowed.size() <= 4) {
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

std::string default_text(const Value& value) {
  if (!value.is_array()) return value.dump();
  std::vector<std::string> items;
  for (const Value& item : value) items.push_back(item.dump());
  return "[" + join(items, ", ") + "]";
}

std::string with_default(const SettingSpec& spec) {
  const Value value = default_value(spec);
  const bool is_shown = !value.is_null() && value != false && !value.is_object();
  return std::string(spec.help) + (is_shown ? fmt::format(" Default: {}.", default_text(value)) : "");
}

// The help of a setting, one or more lines; empty if it has no flag in this dialect.
std::string setting_help(const SettingSpec& spec, Dialect dialect, std::size_t width, bool all) {
  const std::string synopsis = flag_synopsis(spec, dialect);
  if (synopsis.empty()) return "";
  return help_entry(synopsis, all ? flag_description(spec) : with_default(spec), width);
}

// The headings of the families; a job uses few of them.
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

}  // namespace

HelpScope help_scope(const CommandLine& command_line) {
  HelpScope scope{.all = command_line.help_all};
  struct Switch {
    SettingId setting;
    std::string_view family;
  };
  constexpr std::array kSwitches = {Switch{key::use_fsdp, "FSDP"}, Switch{key::use_deepspeed, "DeepSpeed"},
                                    Switch{key::use_megatron_lm, "Megatron-LM"},
                                    Switch{key::use_parallelism_config, "Parallel dimensions"},
                                    Switch{key::tpu, "TPU"}};
  for (const Switch& one : kSwitches) {
    if (command_line.flags.contains(one.setting)) scope.families.push_back(one.family);
  }
  // A flag of a family selects the family.
  for (const SettingSpec& spec : schema()) {
    const bool selects = is_family(spec.group) && command_line.flags.contains(spec.id);
    if (selects && std::ranges::find(scope.families, spec.group) == scope.families.end())
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
  std::vector<std::string> sources;
  if (spec.in_file && !spec.section.empty())
    sources.push_back(fmt::format("key {}.{}", spec.section, file_key(spec)));
  if (spec.in_file && spec.section.empty()) sources.push_back(fmt::format("key {}", file_key(spec)));
  if (!spec.variable.empty()) sources.push_back(fmt::format("variable {}", spec.variable));
  if (!spec.pet.empty()) sources.push_back(fmt::format("variable {}", spec.pet));
  if (!spec.environment.empty()) sources.push_back(fmt::format("workers see {}", spec.environment));
  return with_default(spec) + (sources.empty() ? "" : " [" + join(sources, "; ") + "]");
}

namespace {

std::string usage(Dialect dialect, std::string_view program, std::size_t width) {
  std::string text = fmt::format("usage: {} [options] PROGRAM [ARGUMENTS ...]\n\n", program);
  text += wrap(
      dialect == Dialect::launch
          ? "Starts and guards one worker per device. Takes the flags of accelerate launch and of torchrun, "
            "spelt with - or _."
          : "Starts and guards workers by torchrun's rules: no config file is read.",
      0, width);
  return text + '\n';
}

std::string examples(Dialect dialect, std::string_view program) {
  const std::vector<std::string> lines =
      dialect == Dialect::launch
          ? std::vector<std::string>{"train.py --epochs 3",
                                     "--num_processes 4 --mixed_precision bf16 train.py",
                                     "--hosts node0,node1 --max-restarts 3 train.py"}
          : std::vector<std::string>{
                "--standalone --nproc-per-node 4 train.py --epochs 3",
                "--nproc-per-node gpu --max-restarts 3 train.py",
                "--nnodes 2 --node-rank 0 --master-addr node0 --nproc-per-node 8 train.py"};
  std::string text = "\nExamples:\n";
  for (const std::string& line : lines) text += fmt::format("  {} {}\n", program, line);
  return text;
}

// A screen: the flags that most jobs need.
std::string short_help(Dialect dialect, std::string_view program, std::size_t width) {
  std::string text = usage(dialect, program, width) + examples(dialect, program) + "\nOptions:\n";
  for (const SettingSpec& spec : schema()) {
    if (spec.essential) text += setting_help(spec, dialect, width, false);
  }
  const std::string families = dialect == Dialect::launch ? " A flag before --help shows its family, as in "
                                                            "--use_fsdp --help."
                                                          : "";
  return text + "\n" +
         wrap("--help-all shows all flags, with their keys and variables." + families, 0, width) + "\n";
}

std::string group_help(std::string_view group, Dialect dialect, std::size_t width, bool all) {
  std::string text = fmt::format("\n{}:\n", group);
  for (const SettingSpec& spec : schema()) {
    if (spec.group == group) text += setting_help(spec, dialect, width, all);
  }
  return text;
}

}  // namespace

std::string launch_help(Dialect dialect, std::string_view program, std::size_t width,
                        const HelpScope& scope) {
  std::string text = scope.all ? usage(dialect, program, width) : short_help(dialect, program, width);
  for (const std::string_view group : help_groups(dialect)) {
    if (scope.all || std::ranges::find(scope.families, group) != scope.families.end())
      text += group_help(group, dialect, width, scope.all);
  }
  return text;
}

std::span<const ExitCodeMeaning> exit_code_meanings() {
  static constexpr std::array kMeanings = {
      ExitCodeMeaning{"0", "every worker succeeded"},
      ExitCodeMeaning{
          "1", "the system refused: permissions, a full disk, a port in use; the preflight found an error"},
      ExitCodeMeaning{"2", "usage or configuration"},
      ExitCodeMeaning{
          "75",
          "try again later: the nodes of the job did not find each other in time, or it was preempted "
          "(--requeue-on-preemption)"},
      ExitCodeMeaning{"124", "the job hung and was stopped for it (--hang-timeout, --on-hang)"},
      ExitCodeMeaning{"128 + n", "ended by signal n: acc itself, or the worker that failed first"},
      ExitCodeMeaning{"any other", "the code of the worker that failed first, unchanged"},
  };
  return kMeanings;
}

namespace {

// In troff `\\` starts an escape, `-` is a dash, and `.` or `'` at the beginning of a line starts a
// request.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') result += "\\e";
    if (c == '-') result += "\\-";
    if (c != '\\' && c != '-') result += c;
  }
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string heading(std::string_view name, std::string_view version, std::string_view what) {
  return fmt::format(".TH {} 1 \"\" \"acc {}\" \"User commands\"\n.SH NAME\n{} \\- {}\n", to_upper(name),
                     version, escaped(name), escaped(what));
}

std::string tagged(std::string_view tag, std::string_view text) {
  return fmt::format(".TP\n.B {}\n{}\n", escaped(tag), escaped(text));
}

std::string exit_codes() {
  std::string text = ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : exit_code_meanings()) text += tagged(code, meaning);
  return text;
}

}  // namespace

std::string man_page(const std::vector<CompletionCommand>& commands, std::string_view version) {
  std::string text = heading("acc", version, "launcher for distributed training");
  text += ".SH SYNOPSIS\n.B acc\n.I COMMAND\n[\n.I arguments\n]\n.SH COMMANDS\n";
  for (const CompletionCommand& command : commands) {
    text += tagged("acc " + command.name, command.help + ".");
    if (command.name == "launch" || command.name == "run") continue;
    if (!command.words.empty()) text += escaped("One of: " + join(command.words, ", ") + ".") + "\n";
    if (command.flags.empty()) continue;
    text += ".RS\n";
    for (const CompletionFlag& flag : command.flags)
      text += tagged(flag.spelling + (flag.takes_value ? " VALUE" : ""), flag.help);
    text += ".RE\n";
  }
  return text + exit_codes() + ".SH SEE ALSO\n.BR acc\\-launch (1),\n.BR acc\\-run (1)\n";
}

std::string launch_man_page(Dialect dialect, std::string_view version) {
  const bool launch = dialect == Dialect::launch;
  std::string text =
      heading(launch ? "acc-launch" : "acc-run", version,
              launch ? "start a program on one worker per device" : "start workers by torchrun's rules");
  text += fmt::format(".SH SYNOPSIS\n.B acc {}\n[\n.I options\n]\n.I PROGRAM\n[\n.I arguments\n]\n",
                      launch ? "launch" : "run");
  text += ".SH DESCRIPTION\n";
  text += launch ? "Takes the flags of accelerate launch and of torchrun. A flag takes precedence over a "
                   "variable, a "
                   "variable over the config file, the file over the default.\n"
                 : "Takes the flags of torchrun. No config file is read.\n";
  text += escaped("Each - inside of a flag may be written _ and the other way round.") + "\n.SH OPTIONS\n";
  for (const std::string_view group : help_groups(dialect)) {
    text += fmt::format(".SS {}\n", escaped(group));
    for (const SettingSpec& spec : schema()) {
      const std::string synopsis = flag_synopsis(spec, dialect);
      if (spec.group == group && !synopsis.empty()) text += tagged(synopsis, flag_description(spec));
    }
  }
  return text + exit_codes() + ".SH SEE ALSO\n.BR acc (1)\n";
}

}  // namespace acc::launcher
