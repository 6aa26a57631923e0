// SPDX-License-Identifier: Apache-2.0
#include "kept_accelerate.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/caller.hpp"
#include "replace_process.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

// For a program: with -c Python would import a random.py of the current folder.
constexpr const char* kWithoutCurrentFolder = "import sys\nif sys.path[:1] == ['']: del sys.path[0]\n";

// As `python -m accelerate.commands.accelerate_cli`, which ACC_REPLACE_ACCELERATE would make acc again.
constexpr const char* kPythonProgram =
    "import importlib.util, sys\n"
    "if importlib.util.find_spec('accelerate') is None:\n"
    "    sys.exit('acc: acc does not do this, and accelerate is not installed for ' + sys.executable)\n"
    "from accelerate.commands.accelerate_cli import main\n"
    "main()\n";

// Names the program that was kept while it runs.
constexpr const char* kHandedOn = "ACC_HANDED_ON";

Error cannot_start(const std::string& program, const std::string& reason) {
  return Error({.kind = ErrorKind::system,
                .what = "cannot be started: " + reason,
                .where = program,
                .hint = "`pip install --force-reinstall accelerate`, then `acc install-accelerate --yes`"});
}

// The kernel would only say "No such file", of the program.
void require_interpreter(const std::string& program) {
  const fs::path interpreter = interpreter_of_script(program);
  if (!interpreter.empty() && !fs::exists(interpreter))
    throw cannot_start(program, "its interpreter " + interpreter.string() + " is gone");
}

}  // namespace

KeptAccelerate::KeptAccelerate(const AccelerateCaller& caller, Environment& environment)
    : handed_on_(environment.get(kHandedOn)), environment_(environment) {
  // Not for the workers of a job: what they call is no part of that program.
  environment.erase(kHandedOn);
  if (!caller.python.empty()) {
    const std::string program = kPythonProgram;
    command_ = {caller.python, "-c", caller.as_module ? program : kWithoutCurrentFolder + program};
  } else if (const fs::path program = find_kept_program(absolute_path(caller.path), "accelerate");
             !program.empty()) {
    command_ = {program.string()};
  }
}

void KeptAccelerate::become(const std::vector<std::string>& words) const {
  std::vector<std::string> command = command_;
  command.insert(command.end(), words.begin(), words.end());
  const std::string& program = command.front();
  if (handed_on_ == program) {
    throw Error({.kind = ErrorKind::system,
                 .what = "calls accelerate, which is acc and calls it again, without an end",
                 .where = program,
                 .hint = "let it call `python -m accelerate.commands.accelerate_cli`"});
  }
  require_interpreter(program);
  Environment environment = environment_;
  environment.set(kHandedOn, program);
  const std::vector<std::string> variables = std::move(environment).to_strings();
  replace_process(program.c_str(), pointers_to(command).data(), pointers_to(variables).data());
  throw cannot_start(program, std::strerror(errno));
}

void KeptAccelerate::become_or_refuse(const std::vector<std::string>& words,
                                      const std::string& reason) const {
  if (!exists()) throw refusal("accelerate " + join(words, " "), reason);
  become(words);
}

Error KeptAccelerate::refusal(const std::string& where, const std::string& reason) {
  return Error({.kind = ErrorKind::system,
                .what = reason + ", and no accelerate was kept that does it",
                .where = where,
                .hint = "pip install accelerate, and then `acc install-accelerate` keeps it"});
}

}  // namespace acc::launcher
