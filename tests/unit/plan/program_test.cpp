// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/program.hpp"

#include <sys/stat.h>

#include "support/catch.hpp"
#include "support/inputs.hpp"
#include "support/temporary_folder.hpp"

using acc::Environment;
using acc::FileKind;
using acc::find_program;
using acc::ProgramRequest;
using acc::WorkerProgram;
using acc::test::files;

using Words = std::vector<std::string>;

namespace {

const Environment kPath{{"PATH", "/usr/bin:/bin"}};

acc::FileKindOf usual() {
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

TEST_CASE("program: the Python is --python, PYTHON_EXEC, VIRTUAL_ENV, CONDA_PREFIX, python3, in that order",
          "[plan]") {
  Environment environment = kPath;
  const auto python = [&](const std::string& asked = "") {
    return find_program({.words = {"train.py"}, .python = asked}, environment, usual()).file.string();
  };
  CHECK(python() == "/usr/bin/python3");
  environment.set("CONDA_PREFIX", "/conda");
  CHECK(python() == "/conda/bin/python");
  environment.set("VIRTUAL_ENV", "/venv");
  CHECK(python() == "/venv/bin/python");
  environment.set("PYTHON_EXEC", "python3");
  CHECK(python() == "/usr/bin/python3");
  CHECK(python("/conda/bin/python") == "/conda/bin/python");
}

TEST_CASE("program: a binary is executed as it is, without --no_python", "[plan]") {
  const WorkerProgram program = find_program({.words = {"./a.out", "x"}}, kPath, usual());
  CHECK(program.command == Words{"./a.out", "x"});
  CHECK(program.file == "./a.out");
}

TEST_CASE("program: a bare name that is no file here is looked for on PATH", "[plan]") {
  CHECK(find_program({.words = {"echo", "hi"}}, kPath, usual()).file == "/bin/echo");
  CHECK(find_program({.words = {"echo"}, .no_python = true}, kPath, usual()).file == "/bin/echo");
}

TEST_CASE("program: -m gives Python the module", "[plan]") {
  CHECK(find_program({.words = {"pkg.train", "a"}, .module = true}, kPath, usual()).command ==
        Words{"/usr/bin/python3", "-m", "pkg.train", "a"});
}

TEST_CASE("program: what cannot be started is refused with the reason", "[plan]") {
  CHECK(problem_of({.words = {"missing.py"}}).starts_with("missing.py: no such program"));
  CHECK(problem_of({.words = {"./data"}}) == "./data: is a directory, not a program");
  CHECK(problem_of({.words = {"./plain"}}) == "./plain: is not executable (chmod +x ./plain)");
  CHECK(problem_of({.words = {"nothing"}, .no_python = true}) ==
        "nothing: no such program on PATH (for a file here write ./nothing)");
  CHECK(problem_of({.words = {"train.py"}, .python = "/no/python"}) ==
        "--python: no executable Python at '/no/python'");
  CHECK(find_program({.words = {"train.py"}}, {{"PATH", "/empty"}}, usual())
            .problem->what.starts_with("no Python found"));
  CHECK(to_string(*find_program({.words = {"train.py"}}, {{"PYTHON_EXEC", ""}}, usual()).problem)
            .starts_with("PYTHON_EXEC: is set but empty"));
}

TEST_CASE("program: files are told apart by what is in them", "[plan]") {
  const acc::test::TemporaryFolder folder;
  const auto script = folder.write("script", "#!/bin/sh\n");
  CHECK(acc::kind_of_file(script) == FileKind::not_executable);
  REQUIRE(::chmod(script.c_str(), 0755) == 0);
  CHECK(acc::kind_of_file(script) == FileKind::executable);
  CHECK(acc::kind_of_file(folder.write("train.py", "print()")) == FileKind::other);
  CHECK(acc::kind_of_file(folder.path()) == FileKind::directory);
  folder.write("pkg/__main__.py", "");
  CHECK(acc::kind_of_file(folder.path() / "pkg") == FileKind::package);
  CHECK(acc::kind_of_file(folder.path() / "missing") == FileKind::missing);
  CHECK(acc::kind_of_file("/proc/self/exe") == FileKind::executable);
}
