// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/watch.hpp"

#include "acc/plan/resolve.hpp"
#include "support/catch.hpp"
#include "support/inputs.hpp"

namespace watch_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
using Words = std::vector<std::string>;

namespace {

LaunchInputs inputs_of(Words words, Dialect dialect = Dialect::torchrun) {
  LaunchInputs launch_inputs = inputs(words, dialect);
  launch_inputs.file_kind = files({{"./a.out", FileKind::executable},
                                   {"train.py", FileKind::other},
                                   {"/usr/bin/python3", FileKind::executable}});
  return launch_inputs;
}

}  // namespace

TEST_CASE("watch: by the flag in both dialects, by a variable, and by the file; it is off by default",
          "[plan]") {
  CHECK_FALSE(resolve(inputs_of({"train.py"})).watch);
  CHECK(resolve(inputs_of({"--watch", "train.py"})).watch);
  CHECK(resolve(inputs_of({"--watch", "--num_processes", "2", "--cpu", "train.py"}, Dialect::launch)).watch);
  LaunchInputs launch_inputs = inputs_of({"train.py"});
  launch_inputs.environment.set("ACC_WATCH", "1");
  CHECK(resolve(launch_inputs).watch);
  launch_inputs.environment.set("ACC_WATCH", "0");
  CHECK_FALSE(resolve(launch_inputs).watch);
  LaunchInputs with_file = inputs_of({"--num_processes", "2", "--cpu", "train.py"}, Dialect::launch);
  with_file.file[acc::launcher::key::watch] = {true, "job.yaml:3"};
  CHECK(resolve(with_file).watch);
}

TEST_CASE("watch: where it has no effect a note says why", "[plan]") {
  const LaunchPlan binary = resolve(inputs_of({"--watch", "--no-python", "./a.out"}));
  CHECK_FALSE(binary.watch);
  CHECK(binary.notes == Words{"watch (--watch) has no effect: ./a.out is not a program for Python"});
  const LaunchPlan single = resolve(inputs_of({"--watch", "--cpu", "train.py"}, Dialect::launch));
  CHECK_FALSE(single.watch);
  CHECK(std::ranges::count(
            single.notes, "watch (--watch) has no effect: a single process without a rank is not followed") ==
        1);
}

TEST_CASE("watch: the folder comes before the user's", "[plan]") {
  CHECK(watched_python_path({}, "/job") == "/job");
  CHECK(watched_python_path({{"PYTHONPATH", ""}}, "/job") == "/job");
  CHECK(watched_python_path({{"PYTHONPATH", "/own:/more"}}, "/job") == "/job:/own:/more");
}

}  // namespace watch_test
