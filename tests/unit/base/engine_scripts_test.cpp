// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include "acc/base/engine.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace engine_scripts_test {

using acc::Engine;
using acc::Environment;
using acc::find_engine;

TEST_CASE("engine_scripts: a script of LSF runs on its first host alone", "[base]") {
  CHECK(find_engine({{"LSB_JOBID", "17"}, {"LSB_MCPU_HOSTS", "a 4 b 4 "}}).problem);
  CHECK_FALSE(find_engine({{"LSB_JOBID", "17"}, {"LSB_MCPU_HOSTS", "a 4 "}}).problem);
}

TEST_CASE("engine_scripts: a script of PBS runs on its first host alone, and so does each copy of pbsdsh",
          "[base]") {
  const acc::test::TemporaryFolder folder;
  const auto job = [&](const std::string& hosts, const std::string& node) {
    const std::filesystem::path file = folder.path() / "nodes";
    std::ofstream(file) << hosts;
    return find_engine({{"PBS_JOBID", "3.head"}, {"PBS_NODENUM", node}, {"PBS_NODEFILE", file.string()}});
  };
  CHECK(
      to_string(*job("a\na\nb\nb\n", "0").problem) ==
      "this is a script of PBS job 3.head (2 hosts in PBS_NODEFILE). Only this host would run. Write: mpirun "
      "-npernode 1 acc launch … (for this host alone --engine none)");
  CHECK(job("a\nb\n", "1").problem);
  CHECK_FALSE(job("a\na\n\n", "0").problem);
  CHECK_FALSE(find_engine({{"PBS_JOBID", "3.head"}, {"PBS_NODENUM", "0"}}).problem);
  CHECK(find_engine({{"PBS_JOBID", "3.head"}, {"PBS_NODENUM", "1"}, {"PBS_NODEFILE", "/missing"}}).problem);
}

TEST_CASE("engine_scripts: a script of Grid Engine runs on its first host alone", "[base]") {
  const Environment script = {{"SGE_TASK_ID", "undefined"}, {"JOB_ID", "17"}, {"NHOSTS", "2"}};
  CHECK(find_engine(script).problem->what.starts_with(
      "this is a script of Grid Engine job 17 (2 hosts in NHOSTS)"));
  Environment one = script;
  one.set("NHOSTS", "1");
  CHECK_FALSE(find_engine(one).problem);
}

}  // namespace engine_scripts_test
