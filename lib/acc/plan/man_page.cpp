// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/man_page.hpp"

#include <fmt/format.h>

#include "acc/base/text.hpp"
#include "acc/plan/exit_codes.hpp"
#include "acc/plan/help.hpp"

namespace acc::launcher {
namespace {

// troff takes `\\` for an escape, a hyphen for a dash, and a dot or a quote at the beginning of a line for a
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
  text += launch
              ? "Takes the flags of accelerate launch and of torchrun. A typed flag wins over a variable, a "
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
