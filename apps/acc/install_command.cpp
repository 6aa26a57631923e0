// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/caller.hpp"
#include "acc/plan/program.hpp"
#include "commands.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

struct InstallOptions {
  bool yes = false;
  bool undo = false;
};

/// An install command.
struct InstallCommand {
  std::string name = {};
  std::vector<std::string> programs = {};
  /// The Python package whose scripts these programs are.
  std::string package = {};
};

/// A name that acc takes, beside the path by which it was called.
struct TakenName {
  fs::path link = {};
  /// What has the name before.
  fs::path kept = {};
  std::string package = {};
};

/// One call of an install command.
struct Installation {
  std::string command = {};
  fs::path acc = {};
  std::vector<TakenName> names = {};
};

Installation installation_of(const InstallCommand& command) {
  Installation result{.command = command.name, .acc = absolute_path(program_path()).lexically_normal()};
  const fs::path folder = result.acc.parent_path();
  for (const std::string& name : command.programs)
    result.names.push_back(
        {.link = folder / name, .kept = folder / (name + ".before-acc"), .package = command.package});
  return result;
}

// Also true for a link that leads nowhere.
bool is_there(const fs::path& file) {
  return fs::exists(fs::symlink_status(file));
}

bool is_this_program(const fs::path& file) {
  std::error_code ignored;
  return fs::equivalent(file, "/proc/self/exe", ignored);
}

bool has_same_content(const fs::path& one, const fs::path& other) {
  return fs::is_regular_file(one) && fs::is_regular_file(other) && read_file(one) == read_file(other);
}

// As pip, uv and conda write it: the same for each version of a package, but not by each version of pip.
bool is_script_of(const std::string& package, const fs::path& file) {
  return fs::is_regular_file(file) && is_python_script(file) &&
         read_file(file).find("from " + package + ".") != std::string::npos;
}

// As after `pip uninstall`, which does not know of a program that was kept. A folder of `pip install
// --target` has its packages beside its programs.
bool is_orphan(const TakenName& name) {
  if (!is_script_of(name.package, name.kept)) return false;
  const fs::path python = interpreter_of_script(name.kept);
  if (!python.is_absolute() || !fs::exists(python)) return false;
  const std::string program = fmt::format(
      "import sys\nfrom importlib.util import find_spec\nsys.path[:1] = [sys.argv[1]]\n"
      "spec = find_spec('{}')\nprint('there' if spec and spec.origin else 'gone')",
      name.package);
  const auto output = run_command({python.string(), "-c", program, (name.kept.parent_path() / "..").string()},
                                  Environment::of_process(), {});
  return output && trim(output->text).ends_with("gone");
}

// A newer one may stand beside the one that was kept, which is then worth nothing.
bool is_outdated(const TakenName& name) {
  return has_same_content(name.link, name.kept) ||
         (is_script_of(name.package, name.link) && is_script_of(name.package, name.kept));
}

void refuse_to_lose_one(const TakenName& name) {
  if (is_there(name.link) && is_there(name.kept) && !is_outdated(name)) {
    throw Error({.what = "would be lost, for " + name.kept.string() + " is there already",
                 .where = name.link.string(),
                 .hint = "remove one of the two"});
  }
}

void require_program(const TakenName& name) {
  if (!fs::is_directory(fs::symlink_status(name.link))) return;
  throw Error({.what = "is a folder, and acc takes the names of programs",
               .where = name.link.string(),
               .hint = "move it away"});
}

// As a copy, made at `temporary`, where a link is not possible: of another user's file, or on a file system
// without links.
void keep(const TakenName& name, const fs::path& temporary) {
  std::error_code no_link;
  fs::create_hard_link(name.link, name.kept, no_link);
  if (!no_link) return;
  fs::copy(name.link, temporary, fs::copy_options::copy_symlinks);
  fs::rename(temporary, name.kept);
}

// There is a program of the name at each moment, the old one or acc.
void take(const TakenName& name, const fs::path& acc) {
  const fs::path link = acc.parent_path() / fmt::format(".{}.{}", name.link.filename().string(), ::getpid());
  const fs::path copy = fs::path(link).concat(".copy");
  try {
    fs::create_symlink(acc.filename(), link);
    if (is_there(name.link)) keep(name, copy);
    fs::rename(link, name.link);
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove(link, ignored);
    fs::remove(copy, ignored);
    throw Error({.kind = ErrorKind::system,
                 .what = "cannot be replaced: " + error.code().message(),
                 .where = name.link.string()});
  }
}

void give_back(const TakenName& name) {
  if (is_there(name.kept)) {
    fs::rename(name.kept, name.link);
  } else {
    fs::remove(name.link);
  }
}

// All of them or none.
void take_all(const std::vector<TakenName>& names, const fs::path& acc) {
  auto next = names.begin();
  try {
    for (; next != names.end(); ++next) take(*next, acc);
  } catch (const Error&) {
    std::for_each(names.begin(), next, give_back);
    throw;
  }
}

void tell_what_path_finds(const Installation& installation) {
  const std::string name = installation.names.front().link.filename();
  const fs::path program =
      find_program({.words = {name}, .no_python = true}, Environment::of_process(), kind_of_file).file;
  if (is_this_program(program)) return;
  fmt::print("note: {}, so call it by its path or put {} at the front of PATH\n",
             program.empty() ? "no " + name + " is on PATH" : "the shell finds " + program.string(),
             installation.acc.parent_path().string());
}

bool agrees(const InstallOptions& options) {
  if (options.yes) return true;
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    throw Error({.what = "nothing was changed", .hint = "--yes does it"});
  }
  fmt::print("Do it? [y/N] ");
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void announce_links(const std::vector<TakenName>& names) {
  for (const TakenName& name : names) {
    fmt::print("{} will be a link to acc{}\n", name.link.string(),
               is_there(name.link) ? ", and what it is now will be " + name.kept.filename().string() : "");
  }
}

void report_links(const std::vector<TakenName>& names, const std::string& command) {
  for (const TakenName& name : names) {
    fmt::print("{} is acc now{}{}\n", name.link.string(),
               is_there(name.kept) ? ", and what it was is " + name.kept.filename().string() : "",
               &name == &names.back() ? "; `acc " + command + " --undo` takes that back" : "");
  }
}

int install(const Installation& installation, const InstallOptions& options) {
  std::vector<TakenName> names;
  std::ranges::copy_if(installation.names, std::back_inserter(names),
                       [](const TakenName& name) { return !is_this_program(name.link); });
  if (names.empty()) {
    fmt::print("{} is acc already; --undo takes that back\n", installation.names.front().link.string());
    tell_what_path_finds(installation);
    return 0;
  }
  std::ranges::for_each(names, require_program);
  std::ranges::for_each(names, refuse_to_lose_one);
  if (!options.yes) announce_links(names);
  if (!agrees(options)) {
    fmt::print("nothing was changed\n");
    return exit_code(ErrorKind::usage);
  }
  take_all(names, installation.acc);
  report_links(names, installation.command);
  tell_what_path_finds(installation);
  return 0;
}

void undo_one(const TakenName& name) {
  if (is_orphan(name)) {
    fs::remove(name.link);
    fs::remove(name.kept);
    fmt::print("{} is removed, with {}, whose package {} is not installed any more\n", name.link.string(),
               name.kept.filename().string(), name.package);
    return;
  }
  const bool was_kept = is_there(name.kept);
  if (!was_kept && !is_there(name.link)) {
    fmt::print("{} is not there: nothing to take back\n", name.link.string());
    return;
  }
  give_back(name);
  fmt::print("{} is {}\n", name.link.string(),
             was_kept ? "what it was before" : "removed; there was none before");
}

// The name has been taken back already, by pip for example. Returns whether it is clear what was there
// before.
bool clean_up(const TakenName& name) {
  const bool was_kept = is_there(name.kept);
  if (was_kept && !is_outdated(name)) return false;
  if (was_kept) fs::remove(name.kept);
  fmt::print("{} is not acc: {}\n", name.link.string(),
             was_kept
                 ? "it was installed again, and the older " + name.kept.filename().string() + " is removed"
                 : "nothing to take back");
  return true;
}

int undo_all(const Installation& installation) {
  std::vector<Problem> unclear;
  for (const TakenName& name : installation.names) {
    if (!is_there(name.link) || is_this_program(name.link)) {
      undo_one(name);
    } else if (!clean_up(name)) {
      unclear.push_back({.what = "is not acc, and was left alone, beside " + name.kept.filename().string() +
                                 ", which was there before",
                         .where = name.link.string(),
                         .hint = "remove one of the two"});
    }
  }
  if (!unclear.empty()) throw Error(ErrorKind::usage, std::move(unclear));
  return 0;
}

void add_install_command(CLI::App& app, int& code, const std::string& summary,
                         const InstallCommand& installed) {
  const auto options = std::make_shared<InstallOptions>();
  CLI::App* command = app.add_subcommand(installed.name, summary);
  CLI::Option* yes = command->add_flag("--yes,-y", options->yes, "Do it without asking");
  command->add_flag("--undo", options->undo, "Give back what was there before, or nothing where nothing was")
      ->excludes(yes);
  command->callback([options, installed, &code] {
    const Installation installation = installation_of(installed);
    code = options->undo ? undo_all(installation) : install(installation, *options);
  });
}

}  // namespace

void add_install_commands(CLI::App& app, int& code) {
  add_install_command(app, code,
                      "Make the torchrun beside acc a link to acc, which then follows torchrun's rules",
                      {.name = "install-torchrun", .programs = {"torchrun"}, .package = "torch"});
  add_install_command(
      app, code, "Make the accelerate beside acc a link to acc, which then follows accelerate's rules",
      {.name = "install-accelerate", .programs = accelerate_names(), .package = "accelerate"});
}

}  // namespace acc::launcher
