// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/caller.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace caller_test {

namespace fs = std::filesystem;
using acc::launcher::Caller;
using acc::launcher::caller_under_name;
using acc::launcher::is_python_script;
using acc::launcher::python_of_script;

namespace {

fs::path write_program(const acc::test::TemporaryFolder& folder, const std::string& name,
                       const std::string& text) {
  fs::path file = folder.write(name, text);
  REQUIRE(::chmod(file.c_str(), 0755) == 0);
  return file;
}

}  // namespace

TEST_CASE("caller: a program names its Python as pip, uv, conda and people write it", "[plan]") {
  CHECK(python_of_script("#!/venv/bin/python\nimport re\n") == "/venv/bin/python");
  CHECK(python_of_script("#! /usr/bin/python3.11 -sP\n") == "/usr/bin/python3.11");
  CHECK(python_of_script("#!/usr/bin/env -S python3 -u\n") == "python3");
  CHECK(python_of_script("#!/bin/sh\n'''exec' \"/my venv/bin/python\" \"$0\" \"$@\"\n' '''\n") ==
        "/my venv/bin/python");
  CHECK(python_of_script("#!/bin/sh\n'''exec' /long/bin/python \"$0\" \"$@\"\n' '''\n") ==
        "/long/bin/python");
  CHECK(python_of_script("#!/bin/sh\nexec python \"$0\"\n").empty());
  CHECK(python_of_script("import re\n").empty());
  CHECK(python_of_script("").empty());
}

TEST_CASE("caller: what starts a script is named by its first line, or a Python behind sh", "[plan]") {
  const acc::test::TemporaryFolder folder;
  const auto interpreter = [&](const std::string& text) {
    return acc::launcher::interpreter_of_script(folder.write("script", text));
  };
  CHECK(interpreter("#! /gone/bin/python -s\n") == "/gone/bin/python");
  CHECK(interpreter("#!/bin/sh\n'''exec' \"/my venv/bin/python\" \"$0\" \"$@\"\n' '''\n") ==
        "/my venv/bin/python");
  CHECK(interpreter("#!/usr/bin/env python3\n") == "/usr/bin/env");
  CHECK(interpreter("#!/bin/sh -e\n") == "/bin/sh");
  CHECK(interpreter("import re\n").empty());
}

TEST_CASE("caller: a zip behind any #! is Python's", "[plan]") {
  const acc::test::TemporaryFolder folder;
  CHECK(is_python_script(folder.write("zip", "#!/opt/interpreter\nPK\x03\x04")));
  CHECK(is_python_script(folder.write("script", "#!/usr/bin/env python3\n")));
  CHECK_FALSE(is_python_script(folder.write("shell", "#!/bin/sh\nPKZIP\n")));
  CHECK_FALSE(is_python_script(folder.path() / "missing"));
}

TEST_CASE("caller: the Python of the kept program is meant, also by links to the name", "[plan]") {
  const acc::test::TemporaryFolder folder;
  const fs::path python = write_program(folder, "far/python3", "");
  const fs::path config_file =
      write_program(folder, "bin/accelerate.before-acc", "#!" + python.string() + "\nimport re\n");
  folder.write("elsewhere/file", "");
  fs::create_symlink("acc", folder.path() / "bin/accelerate");
  fs::create_symlink("../bin/accelerate", folder.path() / "elsewhere/accelerate");
  for (const char* name : {"bin/accelerate", "elsewhere/accelerate", "bin/acc"}) {
    const Caller caller = caller_under_name(folder.path() / name, "accelerate");
    CHECK(caller.python == python);
    CHECK(fs::equivalent(caller.kept, config_file));
  }
  CHECK(caller_under_name(folder.path() / "bin/torchrun", "torchrun").python.empty());
  fs::remove(python);
  CHECK(caller_under_name(folder.path() / "bin/accelerate", "accelerate").python.empty());
}

TEST_CASE("caller: where none was kept, a link leads to the environment where acc took the name", "[plan]") {
  const acc::test::TemporaryFolder folder;
  folder.write("env/pyvenv.cfg", "");
  folder.write("env/bin/acc", "");
  folder.write("links/file", "");
  fs::create_symlink("acc", folder.path() / "env/bin/torchrun");
  fs::create_symlink("../env/bin/torchrun", folder.path() / "links/torchrun");
  CHECK(fs::equivalent(caller_under_name(folder.path() / "links/torchrun", "torchrun").path.parent_path(),
                       folder.path() / "env/bin"));
  // To acc itself: it may be alone in an environment of its own.
  fs::remove(folder.path() / "links/torchrun");
  fs::create_symlink("../env/bin/acc", folder.path() / "links/torchrun");
  CHECK(caller_under_name(folder.path() / "links/torchrun", "torchrun").path ==
        folder.path() / "links/torchrun");
}

}  // namespace caller_test
