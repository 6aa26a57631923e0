// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/program.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>

#include "support/catch.hpp"
#include "support/inputs.hpp"
#include "support/temporary_folder.hpp"

namespace program_test {

using acc::Environment;
using acc::launcher::FileKind;
using acc::launcher::find_program;
using acc::launcher::ProgramRequest;
using acc::launcher::WorkerProgram;
using acc::test::files;

using Words = std::vector<std::string>;

namespace {

const Environment kPath{{"PATH", "/usr/bin:/bin"}};

acc::launcher::FileKindOf usual() {
  return files({{"train.py", FileKind::other},
                {"./a.out", FileKind::executable},
                {"./data", FileKind::directory},
                {"./plain", FileKind::not_executable},
                {"/usr/bin/python3", FileKind::executable},
                {"/bin/echo", FileKind::executable},
                {"/venv/bin/python", FileKind::executable},
                {"/conda/bin/python", FileKind::executable}});
}

std::string problem_of(const ProgramRequest& request) {
  const WorkerProgram program = find_program(request, kPath, usual());
  return program.problem ? to_string(*program.problem) : "none";
}

}  // namespace

TEST_CASE("program: a .py runs under the Python that is found, arguments untouched", "[plan]") {
  const WorkerProgram program =
      find_program({.words = {"train.py", "-x"}, .unbuffered = true}, kPath, usual());
  CHECK(program.command == Words{"/usr/bin/python3", "-u", "train.py", "-x"});
  CHECK(program.file == "/usr/bin/python3");
  CHECK_FALSE(program.problem.has_value());
}

TEST_CASE("program: the Python is what `python3` would start, with its origin", "[plan]") {
  Environment environment = {{"PATH", "/usr/bin:/bin"}, {"VIRTUAL_ENV", "/venv"}, {"CONDA_PREFIX", "/conda"}};
  auto known = files({{"train.py", FileKind::other},
                      {"/usr/bin/python", FileKind::executable},
                      {"/bin/python3", FileKind::executable},
                      {"/venv/bin/python", FileKind::executable},
                      {"/conda/bin/python", FileKind::executable},
                      {"/env/bin/../pyvenv.cfg", FileKind::other},
                      {"/env/bin/python", FileKind::executable},
                      {"/forge/bin/../conda-meta", FileKind::directory},
                      {"/forge/bin/python3", FileKind::executable}});
  const auto python = [&](const std::string& asked = "", const std::string& called_as = "/opt/bin/acc") {
    const WorkerProgram program = find_program(
        {.words = {"train.py"}, .python = asked, .caller = {.path = called_as}}, environment, known);
    return program.file.string() + ", " + program.python_origin;
  };
  CHECK(python() == "/usr/bin/python, PATH");
  CHECK(python("", "/env/bin/acc") == "/env/bin/python, beside /env/bin/acc");
  CHECK(python("", "/forge/bin/acc") == "/forge/bin/python3, beside /forge/bin/acc");
  environment.set("PATH", "/venv/bin:/usr/bin");
  CHECK(python() == "/venv/bin/python, PATH");
  environment.set("PATH", "/sbin");
  CHECK(python() == "/venv/bin/python, VIRTUAL_ENV");
  environment.erase("VIRTUAL_ENV");
  CHECK(python() == "/conda/bin/python, CONDA_PREFIX");
  environment.set("PYTHON_EXEC", "/bin/python3");
  CHECK(python("", "/env/bin/acc") == "/bin/python3, PYTHON_EXEC");
  CHECK(python("/conda/bin/python") == "/conda/bin/python, --python");
}

TEST_CASE("program: the Python of the program whose name acc has comes before all that was not named",
          "[plan]") {
  const auto known = files({{"train.py", FileKind::other},
                            {"/env/bin/../pyvenv.cfg", FileKind::other},
                            {"/env/bin/python", FileKind::executable},
                            {"/usr/bin/python3", FileKind::executable}});
  ProgramRequest request{
      .words = {"train.py"},
      .caller = {
          .path = "/env/bin/torchrun", .kept = "/env/bin/torchrun.before-acc", .python = "/far/python"}};
  CHECK(find_program(request, kPath, known).file == "/far/python");
  CHECK(find_program(request, kPath, known).python_origin == "/env/bin/torchrun.before-acc");
  CHECK(find_program(request, {{"PYTHON_EXEC", "/usr/bin/python3"}}, known).file == "/usr/bin/python3");
  request.python = "/env/bin/python";
  CHECK(find_program(request, kPath, known).file == "/env/bin/python");
}

TEST_CASE("program: a Python script without .py is Python's where a peer would run it so", "[plan]") {
  const auto is_python = [](const std::filesystem::path& file) {
    return file == "./a.out" || file == "./plain";
  };
  for (const char* name : {"./a.out", "./plain"}) {
    const WorkerProgram program =
        find_program({.words = {name, "x"}, .is_python_script = is_python}, kPath, usual());
    CHECK(program.command == Words{"/usr/bin/python3", name, "x"});
    CHECK_FALSE(program.problem.has_value());
  }
  CHECK(find_program({.words = {"./a.out"}, .no_python = true, .is_python_script = is_python}, kPath, usual())
            .command == Words{"./a.out"});
  CHECK(find_program({.words = {"echo"}, .is_python_script = is_python}, kPath, usual()).file == "/bin/echo");
}

TEST_CASE("program: a script from standard input is Python's, and can be read once", "[plan]") {
  const auto known = files({{"/dev/stdin", FileKind::stream}, {"/usr/bin/python3", FileKind::executable}});
  for (const char* name : {"-", "/dev/stdin"}) {
    const WorkerProgram program = find_program({.words = {name, "x"}}, kPath, known);
    CHECK(program.command == Words{"/usr/bin/python3", name, "x"});
    CHECK_FALSE(program.problem.has_value());
    CHECK(program.read_once);
  }
}

TEST_CASE("program: a binary is executed as it is, without --no_python", "[plan]") {
  const WorkerProgram program = find_program({.words = {"./a.out", "x"}}, kPath, usual());
  CHECK(program.command == Words{"./a.out", "x"});
  CHECK(program.file == "./a.out");
}

TEST_CASE("program: a bare name that is not a file here is searched on PATH", "[plan]") {
  CHECK(find_program({.words = {"echo", "hi"}}, kPath, usual()).file == "/bin/echo");
  CHECK(find_program({.words = {"echo"}, .no_python = true}, kPath, usual()).file == "/bin/echo");
}

TEST_CASE("program: a value behind a switch is not run as a program of that name", "[plan]") {
  const auto known = files({{"/usr/bin/python3", FileKind::executable},
                            {"/bin/true", FileKind::executable},
                            {"/bin/test", FileKind::executable},
                            {"off", FileKind::other}});
  const auto problem = [&](const ProgramRequest& request) {
    const WorkerProgram program = find_program(request, kPath, known);
    return program.problem ? to_string(*program.problem) : "none";
  };
  CHECK(problem({.words = {"true", "train.py"}, .after_switch = "--cpu"}) ==
        "argument --cpu: 'true' behind it would be the program (the flag takes no value; `-- true` runs the "
        "program)");
  for (const char* word : {"True", "yes", "0", "test"})
    CHECK(problem({.words = {word, "train.py"}, .after_switch = "--cpu"}) != "none");
  CHECK(problem({.words = {"true", "train.py"}}) == "none");
  CHECK(problem({.words = {"true"}, .after_switch = "--standalone"}) == "none");
  CHECK(problem({.words = {"off", "x"}, .after_switch = "--cpu"}) == "none");
  CHECK(problem({.words = {"test", "x"}, .after_switch = "--module", .module = true}) == "none");
  CHECK(problem({.words = {"true", "x"}, .after_switch = "--no_python", .no_python = true}) == "none");
}

TEST_CASE("program: -m gives Python the module", "[plan]") {
  CHECK(find_program({.words = {"pkg.train", "a"}, .module = true}, kPath, usual()).command ==
        Words{"/usr/bin/python3", "-m", "pkg.train", "a"});
}

TEST_CASE("program: a program that cannot be started is refused with the reason", "[plan]") {
  CHECK(problem_of({.words = {"missing.py"}}).starts_with("missing.py: no such program"));
  CHECK(problem_of({.words = {"./data"}}) == "./data: is a directory, not a program");
  CHECK(problem_of({.words = {"./plain"}}) == "./plain: is not executable (chmod +x ./plain)");
  CHECK(
      problem_of({.words = {"train.py"}, .no_python = true}) ==
      "train.py: is neither a binary nor a script that names what runs it (a script needs a first line like "
      "#!/bin/sh)");
  CHECK(problem_of({.words = {"nothing"}, .no_python = true}) ==
        "nothing: no such program on PATH (for a file here write ./nothing)");
  CHECK(problem_of({.words = {"train.py"}, .python = "/no/python"}) ==
        "--python: no executable Python at '/no/python'");
  CHECK(find_program({.words = {"train.py"}}, {{"PATH", "/empty"}}, usual())
            .problem->what.starts_with("no Python found"));
  CHECK(to_string(*find_program({.words = {"train.py"}}, {{"PYTHON_EXEC", ""}}, usual()).problem)
            .starts_with("PYTHON_EXEC: is set but empty"));
}

TEST_CASE("program: the kind of a file depends on its content", "[plan]") {
  const acc::test::TemporaryFolder folder;
  const auto script = folder.write("script", "#!/bin/sh\n");
  CHECK(acc::launcher::kind_of_file(script) == FileKind::not_executable);
  REQUIRE(::chmod(script.c_str(), 0755) == 0);
  CHECK(acc::launcher::kind_of_file(script) == FileKind::executable);
  CHECK(acc::launcher::kind_of_file(folder.write("train.py", "print()")) == FileKind::other);
  CHECK(acc::launcher::kind_of_file(folder.path()) == FileKind::directory);
  folder.write("pkg/__main__.py", "");
  CHECK(acc::launcher::kind_of_file(folder.path() / "pkg") == FileKind::package);
  CHECK(acc::launcher::kind_of_file(folder.path() / "missing") == FileKind::missing);
  CHECK(acc::launcher::kind_of_file("/proc/self/exe") == FileKind::executable);
  CHECK(acc::launcher::kind_of_file("/dev/null") == FileKind::stream);
}

TEST_CASE("program: examining a pipe reads nothing from it", "[plan]") {
  std::array<int, 2> ends = {};
  REQUIRE(::pipe(ends.data()) == 0);
  REQUIRE(::write(ends[1], "#!/bin/sh", 9) == 9);
  CHECK(acc::launcher::kind_of_file("/dev/fd/" + std::to_string(ends[0])) == FileKind::stream);
  std::array<char, 16> left = {};
  CHECK(::read(ends[0], left.data(), left.size()) == 9);
  for (const int end : ends) ::close(end);
}

TEST_CASE("program: a notebook is refused with the two ways to run it", "[plan]") {
  CHECK(problem_of({.words = {"train.ipynb"}}) ==
        "train.ipynb: is a notebook, not a program (make a script of it with `jupyter nbconvert --to script "
        "train.ipynb`, or start processes from within it with accelerate's notebook_launcher)");
}

}  // namespace program_test
