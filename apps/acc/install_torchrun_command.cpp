// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/plan/program.hpp"
#include "commands.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

struct InstallOptions {
  bool yes = false;
  bool undo = false;
};

/// The files beside the path by which acc was called.
struct Paths {
  fs::path acc = {};
  fs::path torchrun = {};
  /// What torchrun was before.
  fs::path kept = {};
};

Paths paths_of_program() {
  const fs::path acc = absolute_path(program_path()).lexically_normal();
  return {.acc = acc,
          .torchrun = acc.parent_path() / "torchrun",
          .kept = acc.parent_path() / "torchrun.before-acc"};
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

// pip gives each PyTorch the same torchrun, so a newer one may stand beside the one that was kept.
void refuse_to_lose_one(const Paths& paths) {
  if (is_there(paths.torchrun) && is_there(paths.kept) && !has_same_content(paths.torchrun, paths.kept)) {
    throw Error({.what = "would be lost, for " + paths.kept.string() + " is there already",
                 .where = paths.torchrun.string(),
                 .hint = "remove one of the two"});
  }
}

// As a copy, made at `temporary`, where a link is not possible: of another user's file, or on a file system
// without links.
void keep(const Paths& paths, const fs::path& temporary) {
  std::error_code no_link;
  fs::create_hard_link(paths.torchrun, paths.kept, no_link);
  if (!no_link) return;
  if (fs::is_directory(fs::symlink_status(paths.torchrun)))
    throw fs::filesystem_error("is a folder", paths.torchrun, no_link);
  fs::copy(paths.torchrun, temporary, fs::copy_options::copy_symlinks);
  fs::rename(temporary, paths.kept);
}

// There is a torchrun at each moment, the old one or acc.
void replace_torchrun(const Paths& paths) {
  const fs::path link = paths.acc.parent_path() / fmt::format(".torchrun.{}", ::getpid());
  const fs::path copy = fs::path(link).concat(".copy");
  try {
    fs::create_symlink(paths.acc.filename(), link);
    if (is_there(paths.torchrun) && !is_there(paths.kept)) keep(paths, copy);
    fs::rename(link, paths.torchrun);
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove(link, ignored);
    fs::remove(copy, ignored);
    throw Error({.kind = ErrorKind::system,
                 .what = "cannot be replaced: " + error.code().message(),
                 .where = paths.torchrun.string()});
  }
}

void tell_what_path_finds(const Paths& paths) {
  const fs::path found =
      find_program({.words = {"torchrun"}, .no_python = true}, Environment::of_process(), kind_of_file).file;
  if (is_this_program(found)) return;
  fmt::print("note: {}, so call it by its path or put {} at the front of PATH\n",
             found.empty() ? "no torchrun is on PATH" : "the shell finds " + found.string(),
             paths.acc.parent_path().string());
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

int install(const Paths& paths, const InstallOptions& options) {
  if (is_this_program(paths.torchrun)) {
    fmt::print("{} is acc already; --undo takes that back\n", paths.torchrun.string());
    tell_what_path_finds(paths);
    return 0;
  }
  refuse_to_lose_one(paths);
  const bool replaces = is_there(paths.torchrun);
  if (!options.yes) {
    fmt::print("{} will be a link to acc{}\n", paths.torchrun.string(),
               replaces ? ", and what it is now will be " + paths.kept.filename().string() : "");
  }
  if (!agrees(options)) {
    fmt::print("nothing was changed\n");
    return exit_code(ErrorKind::usage);
  }
  replace_torchrun(paths);
  fmt::print("{} is acc now{}; `acc install-torchrun --undo` takes that back\n", paths.torchrun.string(),
             replaces ? ", and what it was is " + paths.kept.filename().string() : "");
  tell_what_path_finds(paths);
  return 0;
}

int undo(const Paths& paths) {
  if (is_there(paths.torchrun) && !is_this_program(paths.torchrun)) {
    throw Error({.what = "is not acc, and was left alone", .where = paths.torchrun.string()});
  }
  if (is_there(paths.kept)) {
    fs::rename(paths.kept, paths.torchrun);
    fmt::print("{} is what it was before\n", paths.torchrun.string());
  } else if (fs::remove(paths.torchrun)) {
    fmt::print("{} is removed; there was none before\n", paths.torchrun.string());
  } else {
    fmt::print("{} is not there: nothing to take back\n", paths.torchrun.string());
  }
  return 0;
}

}  // namespace

void add_install_torchrun_command(CLI::App& app, int& code) {
  const auto options = std::make_shared<InstallOptions>();
  CLI::App* command = app.add_subcommand(
      "install-torchrun", "Make the torchrun beside acc a link to acc, which then follows torchrun's rules");
  CLI::Option* yes = command->add_flag("--yes,-y", options->yes, "Do it without asking");
  command->add_flag("--undo", options->undo, "Remove the link, and put back what was there before")
      ->excludes(yes);
  command->callback([options, &code] {
    const Paths paths = paths_of_program();
    code = options->undo ? undo(paths) : install(paths, *options);
  });
}

}  // namespace acc::launcher
