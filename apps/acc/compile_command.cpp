// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
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

constexpr const char* kProgram =
#include "compile_step_program.inc"
    ;

struct CompileOptions {
  std::string factory = {};
  std::string output = {};
  std::string precision = "no";
  std::string python = {};
  bool fixed_batch = false;
};

Python python_with_torch(const std::string& requested) {
  Python python = find_python(requested, Environment::of_process(), kind_of_file, {.path = program_path()});
  if (python.problem) throw Error(ErrorKind::system, {*python.problem});
  if (python.file.empty()) {
    throw Error({.kind = ErrorKind::system,
                 .what = "no Python found, whose torch compiles",
                 .hint = "install python3, or name one with --python"});
  }
  return python;
}

[[noreturn]] void compile(const CompileOptions& options) {
  const Python python = python_with_torch(options.python);
  std::vector<std::string> words = {python.file.string(),
                                    "-c",
                                    kProgram,
                                    options.factory,
                                    options.output,
                                    options.precision,
                                    options.fixed_batch ? "fixed" : "any"};
  replace_process(python.file.c_str(), pointers_to(words).data());
  throw Error({.kind = ErrorKind::system, .what = std::strerror(errno), .where = python.file.string()});
}

}  // namespace

void add_compile_command(CLI::App& app) {
  const auto options = std::make_shared<CompileOptions>();
  CLI::App* command =
      app.add_subcommand("compile", "Compile the training step of a Python model, for C++ to train");
  command
      ->add_option("factory", options->factory,
                   "MODULE:FUNCTION or FILE.py:FUNCTION; returns a dictionary of model, inputs, and if the "
                   "model does not return its loss, targets and loss")
      ->required();
  refuse_empty(command->add_option("-o,--output", options->output, "The package, FILE.pt2"))->required();
  command->add_option("--mixed_precision,--mixed-precision", options->precision, "no (default) or bf16")
      ->check(CLI::IsMember({"no", "bf16"}));
  command->add_flag("--fixed_batch,--fixed-batch", options->fixed_batch,
                    "For batches of the size of the example inputs alone (default: of any size)");
  command->add_option("--python", options->python,
                      "The Python with torch and the model (default: the one for scripts)");
  command->callback([options] { compile(*options); });
}

}  // namespace acc::launcher
