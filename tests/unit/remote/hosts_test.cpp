// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/hosts.hpp"

#include "acc/plan/resolve.hpp"
#include "acc/plan/worker_environment.hpp"
#include "support/catch.hpp"
#include "support/engine_environments.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace hosts_test {

using acc::Environment;
using acc::launcher::allocation_of_host;
using acc::launcher::FileKind;
using acc::launcher::hosts_of;
using acc::launcher::JobHost;
using acc::launcher::LaunchInputs;
using acc::launcher::LaunchPlan;
using acc::launcher::parse_hostfile;
using acc::launcher::parse_hosts;
using acc::launcher::resolve;
using acc::launcher::Settings;
using acc::launcher::total_slots;
using acc::test::error_of;
using acc::test::file;
using acc::test::inputs;
using Hosts = std::vector<JobHost>;
using Words = std::vector<std::string>;
namespace key = acc::launcher::key;

TEST_CASE("hosts: a list names hosts, users and workers", "[remote]") {
  CHECK(parse_hosts("a,b:4, user@c ,", "--hosts") ==
        Hosts{{"a", {}, "--hosts"}, {"b", 4, "--hosts"}, {"user@c", {}, "--hosts"}});
  CHECK(parse_hosts("n[09-10]:2,fe80::1", "--hosts") ==
        Hosts{{"n09", 2, "--hosts"}, {"n10", 2, "--hosts"}, {"fe80::1", {}, "--hosts"}});
}

TEST_CASE("hosts: what is no list is an error that names it", "[remote]") {
  const auto refusal = [](const std::string& list) {
    return error_of([&] { parse_hosts(list, "--hosts"); });
  };
  CHECK(refusal("") == "--hosts: names no host (as in --hosts node1,node2:4)");
  CHECK(refusal("a:") == "--hosts: '' is not a number of workers for a (at least 1)");
  CHECK(refusal("a:two") == "--hosts: 'two' is not a number of workers for a (at least 1)");
  CHECK(refusal("a:0") == "--hosts: '0' is not a number of workers for a (leave a host without workers out)");
  CHECK(refusal("a,b,a:2") == "--hosts: a is named twice (one line with its workers, as in a:4)");
  CHECK(refusal("me@a,a") == "--hosts: a is named twice (one line with its workers, as in a:4)");
  // ssh would take them for options, or a shell for its own.
  for (const char* name : {"-oProxyCommand=x", "me@-x", "a b", "me@", "a;b", "$(x)"}) {
    CAPTURE(name);
    CHECK(refusal(name) ==
          std::string("--hosts: '") + name + "' is not the name of a host (as in node1 or user@node1)");
  }
}

TEST_CASE("hosts: a file has a line for each host in any of the usual forms", "[remote]") {
  CHECK(parse_hostfile("# DeepSpeed, Open MPI\n"
                       "a slots=4\n"
                       "\n"
                       "  b\tslots=2 max_slots=8   # a comment\r\n"
                       "c:3\n"
                       "me@d",
                       "hosts") ==
        Hosts{{"a", 4, "hosts:2"}, {"b", 2, "hosts:4"}, {"c", 3, "hosts:5"}, {"me@d", {}, "hosts:6"}});
}

TEST_CASE("hosts: a range of a file is a host for each number", "[remote]") {
  CHECK(
      parse_hostfile("n[09-10]:8\nme@g[1,3] slots=2", "hosts") ==
      Hosts{{"n09", 8, "hosts:1"}, {"n10", 8, "hosts:1"}, {"me@g1", 2, "hosts:2"}, {"me@g3", 2, "hosts:2"}});
  CHECK(error_of([] { parse_hostfile("n[1-2]\nn2\n[::1]:1\n,\n", "hosts"); }) ==
        "hosts:2: n2 is named twice, first at hosts:1 (one line with its workers, as in n2:4)\n"
        "hosts:3: '[::1]:1' has no range of numbers in '::1'\n"
        "hosts:4: names no host (as in node1 slots=4)");
}

TEST_CASE("hosts: a file may begin with a byte order mark", "[remote]") {
  CHECK(parse_hostfile("\xef\xbb\xbf"
                       "a slots=4\r\nb\r\n",
                       "hosts") == Hosts{{"a", 4, "hosts:1"}, {"b", {}, "hosts:2"}});
}

TEST_CASE("hosts: more workers than can be counted are refused", "[remote]") {
  CHECK(error_of([] { total_slots(parse_hosts("n[1-30000]:100000", "--hosts"), "--hosts"); }) ==
        "--hosts: 3000000000 workers are too many");
  CHECK(total_slots(parse_hosts("a:2,b:3", "--hosts"), "--hosts") == 5);
  CHECK_FALSE(total_slots(parse_hosts("a:2,b", "--hosts"), "--hosts"));
}

TEST_CASE("hosts: all errors of a file are told with their lines", "[remote]") {
  CHECK(error_of([] {
          parse_hostfile("a slots=x\nb port=22\nc:2 slots=2\nd\nd\ne slots=4 max-slots=2\n", "hosts");
        }) ==
        "hosts:1: 'x' is not a number of workers for a (at least 1)\n"
        "hosts:2: 'port=22' after the host is not known (slots=N is; ports, users and keys belong in "
        "~/.ssh/config)\n"
        "hosts:3: the workers of c are given twice\n"
        "hosts:5: d is named twice, first at hosts:4 (one line with its workers, as in d:4)\n"
        "hosts:6: slots=4 is above max_slots=2");
  CHECK(error_of([] { parse_hostfile("# nothing\n\n", "hosts"); }) ==
        "hosts: names no host (a line for each, as in node1 slots=4)");
}

namespace {

LaunchInputs on_host(int rank, const Words& words, const std::string& list = "a:2,b:4") {
  LaunchInputs launch_inputs = inputs(words);
  const auto hosts = parse_hosts(list, "--hosts");
  launch_inputs.host = allocation_of_host(hosts, rank, "--hosts", total_slots(hosts, "--hosts"));
  acc::set_run_id(launch_inputs.host->engine, "run7", "--hosts");
  launch_inputs.host->engine.master_addr = {"10.0.0.1", "first of --hosts"};
  launch_inputs.host->engine.master_port = {23456, "a free port of the first of --hosts"};
  return launch_inputs;
}

LaunchPlan plan_on(int rank, const Words& words, const std::string& list = "a:2,b:4") {
  return resolve(on_host(rank, words, list));
}

}  // namespace

TEST_CASE("hosts: a host's position in the list decides ranks, workers and the address", "[remote]") {
  const LaunchPlan plan = plan_on(1, {"--hosts", "a:2,b:4", "--cpu", "train.py"});
  CHECK(plan.num_machines == 2);
  CHECK(plan.machine_rank == 1);
  CHECK(plan.nproc_per_node == 4);
  CHECK(plan.master_addr == "10.0.0.1");
  CHECK(plan.master_port == 23456);
  CHECK(plan.run_id == "run7");
  CHECK(plan.has_client);
  CHECK(plan.settings.setting(key::num_processes).value == 6);
  CHECK(plan.settings.setting(key::machine_rank).origin == "b, number 2 of --hosts");
  CHECK(plan.settings.setting(key::nproc_per_node).origin == "b:4 of --hosts");
  CHECK(plan.settings.setting(key::main_process_port).origin == "a free port of the first of --hosts");
  CHECK(plan.engine == "--hosts: 2 nodes; this is node 1, b, with 4 workers; they meet at 10.0.0.1:23456");
  // The same number that was typed is no contradiction.
  CHECK(plan_on(1, {"--num_processes", "6", "--cpu", "train.py"}).nproc_per_node == 4);
  // The engine that a person rules out is another one.
  CHECK(plan_on(0, {"--engine", "none", "--cpu", "train.py"}).num_machines == 2);
}

TEST_CASE("hosts: the first host may have a user, or a name that only ssh understands", "[remote]") {
  for (const char* name : {"me@a", "gpu+1", "gpu/1", "ssh://me@a:2222"}) {
    CAPTURE(name);
    const Hosts hosts = {{name, 1, "--hosts"}, {"b", 1, "--hosts"}};
    LaunchInputs launch_inputs = inputs({"--cpu", "train.py"});
    launch_inputs.host = allocation_of_host(hosts, 1, "--hosts", total_slots(hosts, "--hosts"));
    CHECK(error_of([&] { resolve(launch_inputs); }) == "no error");
  }
}

TEST_CASE("hosts: a script from standard input is refused, which workers of hosts do not have", "[remote]") {
  for (const char* script : {"-", "/dev/stdin", "/dev/fd/0"}) {
    LaunchInputs launch_inputs = on_host(0, {"--cpu", script}, "a:1");
    launch_inputs.file_kind = [](const std::filesystem::path& path) {
      return path == "/dev/stdin" || path == "/dev/fd/0" ? FileKind::stream : FileKind::executable;
    };
    CHECK(resolve(launch_inputs).problems ==
          std::vector<acc::Problem>{{.what = "workers on hosts have no standard input",
                                     .where = script,
                                     .hint = "write the script into a file"}});
    launch_inputs.host.reset();
    CHECK(resolve(launch_inputs).problems.empty());
  }
}

TEST_CASE("hosts: one host is a job of one machine with its workers", "[remote]") {
  const LaunchPlan plan = plan_on(0, {"--cpu", "train.py"}, "b:3");
  CHECK(plan.num_machines == 1);
  CHECK(plan.nproc_per_node == 3);
}

TEST_CASE("hosts: torchrun's rules know hosts, too", "[remote]") {
  LaunchInputs launch_inputs = on_host(1, {"train.py"});
  launch_inputs.dialect = acc::launcher::Dialect::torchrun;
  const LaunchPlan plan = resolve(launch_inputs);
  CHECK(plan.num_machines == 2);
  CHECK(plan.nproc_per_node == 4);
}

TEST_CASE("hosts: the default config file does not count machines, a named one must agree", "[remote]") {
  LaunchInputs launch_inputs = on_host(1, {"--cpu", "train.py"});
  launch_inputs.file = file({{"num_machines", 3}, {"machine_rank", 2}, {"num_processes", 9}});
  launch_inputs.file_is_default = true;
  CHECK(resolve(launch_inputs).num_machines == 2);
  launch_inputs.file_is_default = false;
  CHECK(error_of([&] { resolve(launch_inputs); }) ==
        "job.yaml:3 (num_processes = 9) and all workers of --hosts (6) contradict each other (drop "
        "job.yaml:3)");
}

TEST_CASE("hosts: contradictions name both sides", "[remote]") {
  const auto refusal = [](const Words& words, int rank = 1) {
    return error_of([&] { plan_on(rank, words); });
  };
  CHECK(refusal({"--num_machines", "3", "train.py"}) ==
        "--num_machines (num_machines = 3) and --hosts (2 hosts) (--hosts, 2) contradict each other (drop "
        "--num_machines; for jobs that do not know of each other --engine none)");
  CHECK(
      refusal({"--machine_rank", "0", "train.py"}) ==
      "--machine_rank (machine_rank = 0) and b, number 2 of --hosts (--hosts, 1) contradict each other (drop "
      "--machine_rank; for jobs that do not know of each other --engine none)");
  CHECK(refusal({"--nproc_per_node", "8", "train.py"}) ==
        "--nproc_per_node (nproc_per_node = 8) and b:4 of --hosts (4) contradict each other (drop "
        "--nproc_per_node)");
  CHECK(refusal({"--num_processes", "8", "train.py"}) ==
        "--num_processes (num_processes = 8) and all workers of --hosts (6) contradict each other (drop "
        "--num_processes)");
}

TEST_CASE("hosts: commands that start nothing on hosts refuse them", "[remote]") {
  CHECK(error_of([] { resolve(inputs({"--hosts", "a", "train.py"})); }) ==
        "--hosts: works with acc launch and acc run only");
  CHECK(error_of([] { resolve(inputs({"--export", "A", "train.py"})); }) ==
        "--export: needs --hosts or --hostfile");
}

TEST_CASE("hosts: the flags that say where the job starts exclude each other", "[remote]") {
  const auto refusal = [](const Words& words, const Environment& engine = {}) {
    return error_of([&] {
      LaunchInputs launch_inputs = inputs(words);
      launch_inputs.environment.overlay(engine);
      const Settings settings(launch_inputs);
      check_hosts(launch_inputs, settings, hosts_of(settings));
    });
  };
  CHECK(refusal({"--hosts", "a", "--hostfile", "f", "x"}) ==
        "--hosts and --hostfile both name the hosts (give one of them)");
  CHECK(refusal({"--hostfile", "", "x"}) == "--hostfile: is empty (name a file)");
  CHECK(refusal({"--hosts", "a", "--srun", "x"}) ==
        "--srun and --hosts contradict each other (give one of them)");
  CHECK(refusal({"--hosts", "a", "--standalone", "x"}) ==
        "--standalone and --hosts contradict each other (give one of them)");
  CHECK(refusal({"--hosts", "a", "--engine", "mpi", "x"}) ==
        "--engine mpi and --hosts both say what starts acc on each node (give one of them)");
  CHECK(
      refusal({"--hosts", "a", "--attach", "0", "x"}) ==
      "--attach: the terminal cannot be given to a worker of --hosts (start the job without it, and attach a "
      "debugger on the host)");
  const Environment slurm = acc::test::engine_environment("slurm_srun_n2.env", 1);
  CHECK(refusal({"--hosts", "a,b", "x"}, slurm)
            .find("started 2 copies of this command, and each would start the "
                  "job on the 2 hosts of --hosts (drop --hosts") != std::string::npos);
  CHECK(refusal({"--hosts", "a,b", "--engine", "none", "x"}, slurm) == "no error");
}

}  // namespace hosts_test
