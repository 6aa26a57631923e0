// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/shell_completion.hpp"

#include <cstdio>

#include "support/catch.hpp"

namespace shell_completion_test {

using acc::launcher::Dialect;

namespace {

std::string said_by(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  ::pclose(pipe);
  return text;
}

// The completions of bash after these words.
std::string offered(const std::string& script, const std::string& function, const std::string& words,
                    int at) {
  return said_by("bash -c '" + [&] {
    std::string code = script + "COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(at) + "; " +
                       function + "; echo ${COMPREPLY[*]}";
    for (std::size_t i = code.find('\''); i != std::string::npos; i = code.find('\'', i + 4))
      code.replace(i, 1, "'\\''");
    return code;
  }() + "'");
}

}  // namespace

TEST_CASE("completion: bash completes flags by prefix", "[process]") {
  const std::string script = acc::launcher::completion("bash", Dialect::torchrun, "torchrun");
  CHECK(offered(script, "_torchrun", "torchrun --stand", 1) == "--standalone\n");
  CHECK(offered(script, "_torchrun", "torchrun train", 1) == "\n");
  CHECK(script.ends_with("complete -o default -F _torchrun torchrun\n"));
}

TEST_CASE("completion: a script for one subcommand completes only that", "[process]") {
  const std::string script = acc::launcher::completion("bash", Dialect::launch, "acc launch");
  CHECK(offered(script, "_acc_launch", "acc launch --num_proc", 2) == "--num_processes\n");
  CHECK(offered(script, "_acc_launch", "acc config --num_proc", 2) == "\n");
  CHECK(script.ends_with("complete -o default -F _acc_launch acc\n"));
}

TEST_CASE("completion: zsh uses the bash script through bashcompinit", "[process]") {
  CHECK(acc::launcher::completion("zsh", Dialect::torchrun, "torchrun") ==
        "autoload -U +X bashcompinit && bashcompinit\n" +
            acc::launcher::completion("bash", Dialect::torchrun, "torchrun"));
}

TEST_CASE("completion: tcsh has the flags of the program, or of the subcommand alone", "[process]") {
  const std::string torchrun = acc::launcher::completion("tcsh", Dialect::torchrun, "torchrun");
  CHECK(torchrun.starts_with("complete torchrun 'C/-*/(--help --"));
  CHECK(torchrun.find(" --standalone ") != std::string::npos);
  const std::string run = acc::launcher::completion("tcsh", Dialect::torchrun, "acc run");
  CHECK(
      run.starts_with("complete acc 'C/-*/`set words = ($COMMAND_LINE:x); if (\"$words[2]\" == run) echo "));
  CHECK(run.find(" --standalone ") != std::string::npos);
}

}  // namespace shell_completion_test
