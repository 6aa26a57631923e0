// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/shell_completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "acc/base/text.hpp"
#include "acc/plan/command_line.hpp"

namespace acc::launcher {
namespace {

std::vector<std::string> spellings_of(const CompletionCommand& command) {
  std::vector<std::string> result;
  for (const CompletionFlag& flag : command.flags) result.push_back(flag.spelling);
  return result;
}

std::string bash_script(const std::vector<CompletionCommand>& commands) {
  std::vector<std::string> names;
  std::string flags;
  std::string values;
  for (const CompletionCommand& command : commands) {
    names.push_back(command.name);
    flags += fmt::format("    {}) flags={} words={} ;;\n", command.name,
                         in_quotes(join(spellings_of(command), " ")), in_quotes(join(command.words, " ")));
    for (const CompletionFlag& flag : command.flags) {
      if (!flag.takes_value) continue;
      const std::string reply =
          flag.words.empty() ? "" : fmt::format("_acc_words {}; ", in_quotes(join(flag.words, " ")));
      values += fmt::format("    {}:{}) {}return ;;\n", command.name, flag.spelling, reply);
    }
  }
  // Names of files are left to readline, which knows quotes, variables and folders; in a list of words a
  // folder of the same name would make `logs` to `logs/`. It takes `=` for a word of its own.
  return fmt::format(R"(# bash completion of acc: source this file, or `source <(acc completion bash)`
_acc_words() {{
  compopt +o default
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}}
_acc() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command=${{COMP_WORDS[1]}} flags='' words=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _acc_words {}
    return
  fi
  if [[ $current == = ]]; then
    current=''
  elif [[ $before == = ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case $command:$before in
{}  esac
  case $command in
{}  esac
  if [[ $current == -* ]]; then
    _acc_words "$flags"
  elif [[ -n $words ]]; then
    _acc_words "$words"
  fi
}}
complete -o default -F _acc acc
)",
                     in_quotes(join(names, " ")), values, flags);
}

// A colon ends the word in zsh's lists.
std::string described(const std::string& word, const std::string& help) {
  std::string escaped;
  for (const char c : word) escaped += c == ':' ? std::string("\\:") : std::string(1, c);
  return in_quotes(escaped + ":" + help);
}

std::string zsh_script(const std::vector<CompletionCommand>& commands) {
  std::string names;
  std::string flags;
  std::string values;
  for (const CompletionCommand& command : commands) {
    names += "    " + described(command.name, command.help) + "\n";
    flags += fmt::format("    {})\n      words_here=({})\n      flags=(\n", command.name,
                         join(command.words, " "));
    for (const CompletionFlag& flag : command.flags) {
      flags += "        " + described(flag.spelling, flag.help) + "\n";
      if (!flag.takes_value) continue;
      values += fmt::format("    {}:{}) {}; return ;;\n", command.name, flag.spelling,
                            flag.words.empty() ? "_files" : "compadd -- " + join(flag.words, " "));
    }
    flags += "      ) ;;\n";
  }
  return fmt::format(R"(#compdef acc
# zsh completion of acc: save it as _acc in a folder of $fpath, or `source <(acc completion zsh)`
_acc() {{
  local -a commands flags words_here
  commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local before=$words[CURRENT-1]
  if compset -P '--*='; then
    before=${{IPREFIX%=}}
  fi
  case $words[2]:$before in
{}  esac
  case $words[2] in
{}  esac
  if [[ $PREFIX == -* ]]; then
    _describe flag flags
  elif ((${{#words_here}})); then
    compadd -- $words_here
  else
    _files
  fi
}}
if [[ $funcstack[1] == _acc ]]; then _acc "$@"; else compdef _acc acc; fi
)",
                     names, values, flags);
}

std::string fish_script(const std::vector<CompletionCommand>& commands) {
  std::string text = "# fish completion of acc: save it as ~/.config/fish/completions/acc.fish\n";
  for (const CompletionCommand& command : commands) {
    text += fmt::format("complete -c acc -f -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        in_quotes(command.help));
    const std::string prefix =
        fmt::format("complete -c acc -n '__fish_seen_subcommand_from {}'", command.name);
    for (const std::string& word : command.words) text += fmt::format("{} -f -a {}\n", prefix, word);
    for (const CompletionFlag& flag : command.flags) {
      const bool is_long = flag.spelling.starts_with("--");
      text += fmt::format("{} {} {}", prefix, is_long ? "-l" : "-s", flag.spelling.substr(is_long ? 2 : 1));
      if (flag.takes_value) text += flag.words.empty() ? " -r" : " -x -a " + in_quotes(join(flag.words, " "));
      text += " -d " + in_quotes(flag.help) + "\n";
    }
  }
  return text;
}

// A list for `complete` of tcsh, which knows no subcommands: the flags if the first argument is `command`.
std::string tcsh_flags(std::string_view command, const std::vector<std::string>& flags) {
  return fmt::format("if (\"$words[2]\" == {}) echo {}; ", command, join(flags, " "));
}

std::string tcsh_rule(const std::string& flags) {
  return "'C/-*/`set words = ($COMMAND_LINE:x); " + flags + "`/'";
}

std::string tcsh_script(const std::vector<CompletionCommand>& commands) {
  std::vector<std::string> names;
  std::string flags;
  std::string arguments;
  std::map<std::string, std::vector<std::string>> values;
  for (const CompletionCommand& command : commands) {
    names.push_back(command.name);
    flags += tcsh_flags(command.name, spellings_of(command));
    if (!command.words.empty())
      arguments += fmt::format(" 'n/{}/({})/'", command.name, join(command.words, " "));
    for (const CompletionFlag& flag : command.flags) {
      if (!flag.takes_value) continue;
      std::vector<std::string>& words = values[flag.spelling];
      std::ranges::copy_if(flag.words, std::back_inserter(words),
                           [&](const std::string& word) { return !contains(words, word); });
    }
  }
  // The first rule that matches is used. `n` looks at the word before, `c` at the beginning of this one.
  std::string rules = fmt::format("'p/1/({})/'", join(names, " "));
  for (const auto& [flag, words] : values) {
    const std::string list = words.empty() ? "f" : "(" + join(words, " ") + ")";
    rules += fmt::format(" 'n/{0}/{1}/'", flag, list);
    if (flag.starts_with("--")) rules += fmt::format(" 'c/{0}=/{1}/'", flag, list);
  }
  return fmt::format(
      R"(# tcsh completion of acc: save it as ~/.acc.tcsh, and `source ~/.acc.tcsh` in ~/.tcshrc
complete acc {} {}{}
)",
      rules, tcsh_rule(flags), arguments);
}

}  // namespace

std::vector<CompletionFlag> completion_flags(Dialect dialect) {
  std::vector<CompletionFlag> flags;
  for (const SettingSpec& spec : schema()) {
    std::vector<std::string> words;
    for (const std::string_view word : spec.allowed)
      words.push_back(spec.ignore_case ? to_lower(word) : std::string(word));
    if (spec.type == ValueType::boolean || spec.type == ValueType::word_or_truth) {
      words.emplace_back("true");
      words.emplace_back("false");
    }
    for (const Flag& flag : spec.flags) {
      if (!exists_in(flag, dialect)) continue;
      const bool takes_value = flag.needs_argument();
      flags.push_back({.spelling = std::string(flag.spelling),
                       .help = std::string(spec.help),
                       .takes_value = takes_value,
                       .words = takes_value ? words : std::vector<std::string>()});
    }
  }
  return flags;
}

std::string completion_script(Shell shell, const std::vector<CompletionCommand>& commands) {
  switch (shell) {
    case Shell::bash:
      return bash_script(commands);
    case Shell::zsh:
      return zsh_script(commands);
    case Shell::fish:
      return fish_script(commands);
    case Shell::tcsh:
      return tcsh_script(commands);
  }
  return "";
}

std::string completion(std::string_view shell, Dialect dialect, std::string_view program) {
  std::vector<std::string> flags = {"--help"};
  for (const CompletionFlag& flag : completion_flags(dialect)) flags.push_back(flag.spelling);
  const std::size_t blank = program.find(' ');
  const std::string_view command = program.substr(0, blank);
  if (shell == "tcsh") {
    const std::string rule = blank == std::string_view::npos
                                 ? "'C/-*/(" + join(flags, " ") + ")/'"
                                 : tcsh_rule(tcsh_flags(program.substr(blank + 1), flags));
    return fmt::format("complete {} {}\n", command, rule);
  }
  // In `acc launch` the flags belong to the subcommand.
  const std::string only = blank == std::string_view::npos
                               ? ""
                               : fmt::format("[[ ${{COMP_WORDS[1]}} == {} ]] && ", program.substr(blank + 1));
  std::string name = "_" + std::string(program);
  std::ranges::replace_if(name, [](char c) { return c == ' ' || c == '-'; }, '_');
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
