// SPDX-License-Identifier: Apache-2.0
#include "command_parsing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "acc/base/text.hpp"
#include "acc/plan/usage_error.hpp"
#include "version.hpp"

namespace acc::launcher {
namespace {

// The command inside `command` that has this name, or `command` itself.
const CLI::App* inner_command(const CLI::App* command, const std::string& name) {
  for (const CLI::App* inner : command->get_subcommands(nullptr)) {
    if (inner->get_name() == name) return inner;
  }
  return command;
}

std::string option_name(const std::string& word) {
  return word.substr(0, word.find('='));
}

// The options of the command that was being parsed, for a hint on a misspelt one.
std::string nearest_option(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::vector<std::string> unknown;
  for (const std::string& word : words) {
    command = inner_command(command, word);
    if (word.starts_with("--") && command->get_option_no_throw(option_name(word)) == nullptr)
      unknown.push_back(option_name(word));
  }
  if (unknown.empty()) return "";
  std::vector<std::string> names;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return did_you_mean(unknown.front(), names);
}

// The name of the only option that begins so; `beginning` itself if it is a name, or begins several or none.
std::string whole_option(const CLI::App& command, const std::string& beginning) {
  if (command.get_option_no_throw(beginning) != nullptr) return beginning;
  std::set<const CLI::Option*> matches;
  std::string name = beginning;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& long_name : option->get_lnames()) {
      if (!("--" + long_name).starts_with(beginning)) continue;
      matches.insert(option);
      name = "--" + long_name;
    }
  }
  return matches.size() == 1 ? name : beginning;
}

// `--option=` of the command: CLI11 would take the next word for the value.
void refuse_missing_value(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    if (word == "--") return;
    command = inner_command(command, word);
    const std::string name = option_name(word);
    const bool lacks_value = word.starts_with("--") && word.size() == name.size() + 1;
    if (lacks_value && command->get_option_no_throw(name) != nullptr)
      fail(name, "is empty", "give it a value");
  }
}

}  // namespace

void add_version_flag(CLI::App& app) {
  app.set_version_flag("--version", version_text, "Print the version and exit; with --json for programs");
  for (CLI::App* command : app.get_subcommands(nullptr)) add_version_flag(*command);
}

CLI::Option* refuse_empty(CLI::Option* option, const std::string& hint) {
  return option->each([option, hint](const std::string& name) {
    if (name.empty()) fail(option->get_name(), "is empty", hint);
  });
}

void parse_words(CLI::App& app, const std::vector<std::string>& words) {
  refuse_missing_value(app, words);
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
}

Error usage_error(const CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& error) {
  const std::string nearest = nearest_option(app, words);
  const std::string command = words.empty() || words[0].starts_with('-') ? "" : words[0] + " ";
  return Error({.what = error.what(),
                .hint = nearest.empty() ? fmt::format("{} {}--help", app.get_name(), command) : nearest});
}

std::vector<std::string> with_whole_options(const CLI::App& app, std::vector<std::string> words) {
  const CLI::App* command = &app;
  for (std::string& word : words) {
    command = inner_command(command, word);
    if (word == "--") break;
    if (!word.starts_with("--")) continue;
    const std::string name = option_name(word);
    word.replace(0, name.size(), whole_option(*command, name));
  }
  return words;
}

}  // namespace acc::launcher
