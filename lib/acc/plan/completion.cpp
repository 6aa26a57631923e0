// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "acc/base/text.hpp"
#include "acc/plan/shell_completion.hpp"

namespace acc::launcher {

std::string completion(std::string_view shell, Dialect dialect, std::string_view program) {
  std::vector<std::string> flags = {"--help"};
  for (const CompletionFlag& flag : completion_flags(dialect)) flags.push_back(flag.spelling);
  const std::size_t blank = program.find(' ');
  const std::string_view command = program.substr(0, blank);
  // Of a command with subcommands the flags belong to one.
  const std::string only = blank == std::string_view::npos
                               ? ""
                               : fmt::format("[[ ${{COMP_WORDS[1]}} == {} ]] && ", program.substr(blank + 1));
  std::string name = "_" + std::string(program);
  std::ranges::replace_if(
      name, [](char c) { return c == ' ' || c == '-'; }, '_');
  const std::string setup = shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
  return fmt::format(
      "{}{}() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}}\n"
      "  COMPREPLY=()\n"
      "  {}[[ $word == -* ]] && COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n"
      "  return 0\n"
      "}}\n"
      "complete -o default -F {} {}\n",
      setup, name, only, join(flags, " "), name, command);
}

}  // namespace acc::launcher
