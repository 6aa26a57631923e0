// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/command_line.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace command_line_test {

using acc::launcher::CommandLine;
using acc::launcher::Dialect;
using acc::launcher::parse_command_line;
using acc::launcher::Setting;
using acc::test::error_of;
namespace key = acc::launcher::key;

using Words = std::vector<std::string>;

namespace {

CommandLine launch(const Words& words) {
  return parse_command_line(words, Dialect::launch);
}
CommandLine torchrun(const Words& words) {
  return parse_command_line(words, Dialect::torchrun);
}
std::string launch_error(const Words& words) {
  return error_of([&] { launch(words); });
}
std::string torchrun_error(const Words& words) {
  return error_of([&] { torchrun(words); });
}

}  // namespace

TEST_CASE("command_line: all arguments after the program are the program's", "[plan]") {
  const CommandLine line = launch({"--num_processes", "2", "train.py", "--num_processes", "9", "--", "-x"});
  CHECK(line.flags.at(key::num_processes) == Setting{2, "--num_processes"});
  CHECK(line.program == Words{"train.py", "--num_processes", "9", "--", "-x"});
}

TEST_CASE("command_line: dash and underscore, = and blank are equivalent", "[plan]") {
  for (const Words& words :
       {Words{"--num-processes=2"}, Words{"--num_processes", "2"}, Words{"--num-processes", "2"}}) {
    CHECK(launch(words).flags.at(key::num_processes).value == 2);
  }
  CHECK(torchrun({"--nproc_per-node=4", "t.py"}).flags.at(key::nproc_per_node).value == "4");
}

TEST_CASE("command_line: both peers' names set the same setting, the last one wins", "[plan]") {
  CHECK(launch({"--main_process_port", "1", "--master-port", "2"}).flags.at(key::main_process_port) ==
        Setting{2, "--master-port"});
  CHECK(launch({"--node-rank", "1", "--machine_rank=0"}).flags.at(key::machine_rank) ==
        Setting{0, "--machine_rank"});
}

TEST_CASE("command_line: short flags may be combined with each other and a value", "[plan]") {
  const CommandLine line = torchrun({"-mr3", "-t=1", "pkg.train"});
  CHECK(line.flags.at(key::module).value == true);
  CHECK(line.flags.at(key::redirects).value == "3");
  CHECK(line.flags.at(key::tee).value == "1");
  CHECK(line.program == Words{"pkg.train"});
}

TEST_CASE("command_line: flags stay as they were typed, in their order", "[plan]") {
  using acc::launcher::TypedFlag;
  const CommandLine line =
      torchrun({"-mr3", "-t", "1", "--nnodes=1", "--nnodes", "2", "--stand", "pkg.train", "-r3"});
  CHECK(line.typed == std::vector<TypedFlag>{{key::module, {"-m"}},
                                             {key::redirects, {"-r", "3"}},
                                             {key::tee, {"-t", "1"}},
                                             {key::nnodes, {"--nnodes=1"}},
                                             {key::nnodes, {"--nnodes", "2"}},
                                             {key::standalone, {"--stand"}}});
}

TEST_CASE("command_line: torchrun accepts unambiguous abbreviations, launch none", "[plan]") {
  CHECK(torchrun({"--stand", "--nproc=2", "t.py"}).flags.at(key::nproc_per_node).value == "2");
  CHECK(torchrun_error({"--ma", "1", "t.py"}).starts_with("ambiguous option: --ma could match "));
  CHECK(launch_error({"--num_procs", "2", "t.py"}) ==
        "unrecognized arguments: --num_procs (did you mean '--num_processes'?)");
}

TEST_CASE("command_line: acc's own flags do not make torchrun's abbreviations ambiguous", "[plan]") {
  CHECK(torchrun({"--node", "1", "t.py"}).flags.at(key::machine_rank).value == 1);
  CHECK(torchrun({"--event", "console", "t.py"}).flags.at(key::event_log_handler).value == "console");
  CHECK(torchrun({"--log-", "d", "t.py"}).flags.at(key::log_dir).value == "d");
  CHECK(torchrun({"--node-t", "1", "t.py"}).flags.at(key::node_timeout).value == 1);
  CHECK(torchrun({"--h", "t.py"}).help);
  CHECK(torchrun({"--hel"}).help);
  CHECK_FALSE(torchrun({"--he"}).help_all);
}

TEST_CASE("command_line: a word with a blank is an option only when it begins with one", "[plan]") {
  CHECK(torchrun({"--signals_to_handle=SIGTERM, SIGINT", "t.py"}).flags.at(key::signals_to_handle).value ==
        "SIGTERM, SIGINT");
  CHECK(torchrun({"--signals=SIGTERM, SIGINT", "t.py"}).program == Words{"t.py"});
  CHECK(torchrun({"-r0:1, 1:1", "t.py"}).flags.at(key::redirects).value == "0:1, 1:1");
  CHECK(torchrun({"--my program", "a"}).program == Words{"--my program", "a"});
}

TEST_CASE("command_line: whole numbers are Python's", "[plan]") {
  CHECK(torchrun({"--max-restarts", " 1_0", "t.py"}).flags.at(key::max_restarts).value == 10);
}

TEST_CASE("command_line: one -- after the program is for the launcher", "[plan]") {
  CHECK(torchrun({"s.py", "--", "a"}).program == Words{"s.py", "a"});
  CHECK(torchrun({"s.py", "--", "--", "a"}).program == Words{"s.py", "--", "a"});
  CHECK(torchrun({"s.py", "a", "--", "b"}).program == Words{"s.py", "a", "--", "b"});
  CHECK(torchrun({"--", "s.py", "a"}).program == Words{"s.py", "a"});
  CHECK(torchrun({"--", "s.py", "--", "a"}).program == Words{"s.py", "--", "a"});
  CHECK(launch({"s.py", "--", "a"}).program == Words{"s.py", "a"});
}

TEST_CASE("command_line: a switch right before the program is known, to which it may be a value", "[plan]") {
  CHECK(launch({"--cpu", "true", "x.py"}).switch_before_program == "--cpu");
  CHECK(torchrun({"--nnodes=1", "--standalone", "true", "x.py"}).switch_before_program == "--standalone");
  for (const Words& words :
       {Words{"--cpu", "--", "true", "x.py"}, Words{"--cpu", "--num_processes", "2", "x"},
        Words{"--dry_run", "true", "x.py"}, Words{"true", "x.py"}, Words{"--cpu"}})
    CHECK(launch(words).switch_before_program.empty());
}

TEST_CASE("command_line: torchrun's rules exclude accelerate's flags", "[plan]") {
  CHECK(torchrun_error({"--num_processes", "2", "t.py"})
            .starts_with("unrecognized arguments: --num_processes"));
}

TEST_CASE("command_line: an invalid value is an error with its flag", "[plan]") {
  CHECK(torchrun_error({"--max-restarts", "x", "t.py"}) ==
        "argument --max-restarts/--max_restarts: invalid int value: 'x'");
  CHECK(launch_error({"--mixed_precision", "fp17", "t.py"}) ==
        "argument --mixed-precision/--mixed_precision: invalid choice: 'fp17' (choose from no, fp16, bf16, "
        "fp8) (did you "
        "mean 'fp16'?)");
  CHECK(launch_error({"--cpu=1", "t.py"}) ==
        "argument --cpu: ignored explicit argument '1' (the flag takes no value)");
}

TEST_CASE("command_line: a missing value is an error, a negative number is a value", "[plan]") {
  CHECK(launch_error({"--num_processes"}) ==
        "argument --num-processes/--num_processes: expected one argument");
  CHECK(launch_error({"--num_processes", "--cpu", "t.py"}) ==
        "argument --num-processes/--num_processes: expected one argument");
  CHECK(torchrun({"--node-rank", "-1", "t.py"}).flags.at(key::machine_rank).value == -1);
}

TEST_CASE("command_line: dry run is text, or json on request", "[plan]") {
  CHECK(launch({"--dry_run", "t.py"}).flags.at(key::dry_run).value == "text");
  CHECK(launch({"--dry-run=json", "t.py"}).flags.at(key::dry_run).value == "json");
  CHECK(launch_error({"--dry_run=xml", "t.py"}).find("invalid choice: 'xml'") != std::string::npos);
}

TEST_CASE("command_line: help needs no program", "[plan]") {
  CHECK(launch({"--help"}).help);
  CHECK(torchrun({"-h"}).help);
  CHECK_FALSE(launch({"t.py", "--help"}).help);
}

TEST_CASE("command_line: a value may contain blanks, also after an equals sign", "[plan]") {
  const acc::launcher::CommandLine line =
      launch({"--wrap-rank=0:gdb --args", "--wrap_rank", "1:gdb -q", "t.py"});
  CHECK(line.flags.at(key::wrap_rank).value == acc::launcher::Value{"0:gdb --args", "1:gdb -q"});
  CHECK(line.program == std::vector<std::string>{"t.py"});
}

TEST_CASE("command_line: --version ends the parsing, `auto` is accepted for DeepSpeed's numbers", "[plan]") {
  for (const Dialect dialect : {Dialect::launch, Dialect::torchrun})
    CHECK(acc::launcher::parse_command_line({"--version", "--nonsense"}, dialect).version);
  const auto parsed = acc::launcher::parse_command_line(
      {"--gradient_accumulation_steps", "auto", "--gradient_clipping=auto", "train.py"}, Dialect::launch);
  CHECK(parsed.flags.at(key::gradient_accumulation_steps).value == "auto");
  CHECK(parsed.flags.at(key::gradient_clipping).value == "auto");
}

}  // namespace command_line_test
