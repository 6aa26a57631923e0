// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/plan/program.hpp"
#include "command_parsing.hpp"
#include "commands.hpp"
#include "replace_process.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

struct NotebookOptions {
  bool check = false;
  std::string python = {};
  std::string prefix = {};
};

Python notebook_python(const std::string& requested) {
  Python python = find_python(requested, Environment::of_process(), kind_of_file, {.path = program_path()});
  if (python.problem) throw Error(ErrorKind::system, {*python.problem});
  if (python.file.empty()) {
    throw Error({.kind = ErrorKind::system,
                 .what = "no Python found, in which Jupyter's kernel is to run",
                 .hint = "install python3, or name one with --python"});
  }
  return python;
}

// What is done to Jupyter and cling is written in Python, for it runs in the kernel's own.
[[noreturn]] void run_python(const std::string& action, const NotebookOptions& options) {
  const fs::path script = program_folder() / ".." / "share" / "acc" / "notebook" / "install.py";
  if (!fs::exists(script)) {
    throw Error({.kind = ErrorKind::system,
                 .what = "is missing: acc was built without the runtime library",
                 .where = script.lexically_normal().string(),
                 .hint = "build the preset `release` with LibTorch; scripts/quickstart does it"});
  }
  const Python python = notebook_python(options.python);
  std::vector<std::string> words = {python.file.string(), script.lexically_normal().string(), action};
  if (!options.prefix.empty()) words.insert(words.end(), {"--prefix", options.prefix});
  replace_process(python.file.c_str(), pointers_to(words).data());
  throw Error({.kind = ErrorKind::system, .what = std::strerror(errno), .where = python.file.string()});
}

}  // namespace

void add_notebook_command(CLI::App& app, int& /*code*/) {
  const auto options = std::make_shared<NotebookOptions>();
  CLI::App* command =
      app.add_subcommand("notebook", "Set up C++ notebooks in Jupyter, or check what they need");
  command->add_flag("--check", options->check, "Say what notebooks need and what of it is missing");
  CLI::App* install = command->add_subcommand(
      "install", "Make the kernel \"C++ (acc)\" and its precompiled header (half a minute, 220 MB)");
  refuse_empty(install->add_option("--prefix", options->prefix,
                                   "Install the kernel below this folder (default: for this user)"),
               "name a folder");
  for (CLI::App* one : {command, install})
    refuse_empty(one->add_option("--python", options->python,
                                 "The Python with ipykernel and cppyy (default: the one for scripts)"),
                 "name a Python");
  install->callback([options] { run_python("install", *options); });
  command->final_callback([options, command] {
    if (!command->get_subcommands().empty()) return;
    if (!options->check) throw Error({.what = "install, or --check?", .hint = "acc notebook --help"});
    run_python("check", *options);
  });
}

}  // namespace acc::launcher
