// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/rendezvous.hpp"

#include "acc/plan/resolve.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace rendezvous_test {

using acc::launcher::Dialect;
using acc::launcher::LaunchPlan;
using acc::launcher::RendezvousKind;
using acc::launcher::RendezvousPlan;
using acc::test::inputs;
using namespace std::chrono_literals;

namespace {

LaunchPlan plan_of(std::vector<std::string> words, Dialect dialect = Dialect::torchrun) {
  words.emplace_back("train.py");
  return resolve(inputs(words, dialect));
}

LaunchPlan launch_plan(std::vector<std::string> words,
                       const acc::launcher::Value& file = acc::launcher::Value::object()) {
  words.emplace_back("train.py");
  acc::launcher::LaunchInputs launch_inputs = inputs(words);
  launch_inputs.file = acc::test::file(file);
  return resolve(launch_inputs);
}

std::string error(const std::vector<std::string>& words, Dialect dialect = Dialect::torchrun) {
  return acc::test::error_of([&] { plan_of(words, dialect); });
}

}  // namespace

TEST_CASE("rendezvous: a single machine takes a free port on loopback", "[plan]") {
  const LaunchPlan plan = plan_of({"--nproc-per-node", "2"});
  CHECK(plan.rendezvous == RendezvousPlan{.join_timeout = 900s});
  CHECK(plan.master_addr == "127.0.0.1");
  CHECK(plan.master_port == 0);
  CHECK(plan.run_id == "random");
}

TEST_CASE("rendezvous: one machine has a run id of its own, unless others could join", "[plan]") {
  CHECK(plan_of({"--rdzv-id", "none"}).run_id == "none");
  CHECK(plan_of({"--master-port", "29601"}).run_id == "none");
  CHECK(plan_of({"--rdzv-endpoint", "localhost:29603"}).run_id == "none");
  CHECK(plan_of({"--rdzv-backend=c10d", "--rdzv-endpoint", "localhost:29603"}).run_id == "none");
  CHECK(plan_of({"--nnodes=2", "--rdzv-endpoint", "node0:29603"}).run_id == "none");
}

TEST_CASE("rendezvous: a node rank that has no effect is noted", "[plan]") {
  const auto notes = [](const std::string& backend, const std::string& rank) {
    return plan_of({"--nnodes=2", "--rdzv-backend", backend, "--rdzv-endpoint", "node0:29603", "--node-rank",
                    rank})
        .notes;
  };
  CHECK(notes("c10d", "1") ==
        std::vector<std::string>{"--node-rank has no effect: with c10d the nodes agree on their ranks"});
  CHECK(notes("c10d", "0").empty());
  CHECK(notes("static", "1").empty());
}

TEST_CASE("rendezvous: an explicit port of a single machine is used, by each name", "[plan]") {
  CHECK(plan_of({"--master-port", "29601"}).master_port == 29601);
  CHECK(launch_plan({"--main_process_port=29602"}).master_port == 29602);
  CHECK(plan_of({"--rdzv-endpoint", "localhost:29603"}).master_port == 29603);
  CHECK(plan_of({"--rdzv-backend=c10d", "--rdzv-endpoint", "localhost:29603"}).master_port == 0);
  CHECK(error({"--master-port", "70000"}) ==
        "--master-port: 70000 is not a port (0 to 65535; 0 is a free one)");
}

TEST_CASE("rendezvous: standalone uses a free port and a new run id, whatever else is given", "[plan]") {
  const LaunchPlan plan =
      plan_of({"--standalone", "--master-port", "29601", "--rdzv-id", "x", "--rdzv-backend", "none"});
  CHECK(plan.master_port == 0);
  CHECK(plan.run_id == "random");
  CHECK(error({"--standalone", "--nnodes", "2"}) == "--standalone is for one machine, but --nnodes is 2");
}

TEST_CASE("rendezvous: static nodes meet at the store of node 0", "[plan]") {
  const LaunchPlan plan = plan_of({"--nnodes=3", "--node-rank=2", "--rdzv-endpoint=[fe80::1]:29600",
                                   "--rdzv-id=job7", "--rdzv-conf=timeout=20"});
  CHECK(plan.rendezvous == RendezvousPlan{.endpoint_host = "fe80::1",
                                          .endpoint_port = 29600,
                                          .min_nodes = 3,
                                          .max_nodes = 3,
                                          .node_rank = 2,
                                          .join_timeout = 20s});
  CHECK(plan.master_addr == "fe80::1");
  CHECK(plan.master_port == 29600);
  CHECK(plan.run_id == "job7");
  CHECK(plan.num_machines == 3);
}

TEST_CASE("rendezvous: without an endpoint it is the master's address and port", "[plan]") {
  const RendezvousPlan rendezvous =
      plan_of({"--nnodes=2", "--master-addr=node0", "--master-port=29601"}).rendezvous;
  CHECK(rendezvous.endpoint_host == "node0");
  CHECK(rendezvous.endpoint_port == 29601);
  const RendezvousPlan none = plan_of({"--nnodes=2"}).rendezvous;
  CHECK(none.endpoint_host == "127.0.0.1");
  CHECK(none.endpoint_port == 29500);
  const RendezvousPlan c10d =
      plan_of({"--nnodes=2", "--rdzv-backend=c10d", "--master-addr=node0"}).rendezvous;
  CHECK(c10d.endpoint_host == "node0");
  CHECK(c10d.endpoint_port == 29500);
}

TEST_CASE("rendezvous: static takes no range, c10d does", "[plan]") {
  const LaunchPlan fixed = plan_of({"--nnodes=1:4"});
  CHECK(fixed.rendezvous.min_nodes == 4);
  CHECK(fixed.notes == std::vector<std::string>{
                           "--nnodes: the static rendezvous waits for all 4 machines; c10d takes fewer"});
  const LaunchPlan elastic = plan_of({"--nnodes=1:4", "--rdzv-backend=c10d", "--node-rank=9"});
  CHECK(elastic.rendezvous.min_nodes == 1);
  CHECK(elastic.rendezvous.max_nodes == 4);
  CHECK(elastic.notes.empty());
}

TEST_CASE("rendezvous: c10d and etcd have ports of their own", "[plan]") {
  const auto port = [](const std::string& backend, const std::string& endpoint) {
    return plan_of({"--nnodes=2", "--rdzv-backend", backend, "--rdzv-endpoint", endpoint})
        .rendezvous.endpoint_port;
  };
  CHECK(port("c10d", "node0") == 29400);
  CHECK(port("c10d", "node0:29401") == 29401);
  CHECK(port("etcd", "node0") == 2379);
  const LaunchPlan plan = plan_of({"--nnodes=2", "--rdzv-backend=c10d"});
  CHECK(plan.rendezvous.endpoint_host == "localhost");
  CHECK(plan.rendezvous.endpoint_port == 29400);
  CHECK(plan.rendezvous.join_timeout == 600s);
  CHECK(plan.master_port == 0);
  CHECK(plan_of({"--nnodes=2", "--rdzv-backend=etcd"}).rendezvous.join_timeout == 900s);
}

TEST_CASE("rendezvous: local address, node timeout and spares", "[plan]") {
  const RendezvousPlan plan = plan_of({"--nnodes=2:3", "--rdzv-backend=c10d", "--local-addr=10.0.0.1",
                                       "--node-timeout=0.5", "--spares=2"})
                                  .rendezvous;
  CHECK(plan.local_addr == "10.0.0.1");
  CHECK(plan.node_timeout == 500ms);
  CHECK(plan.spares == 2);
  CHECK_FALSE(plan_of({"--nnodes=2"}).rendezvous.node_timeout);
  CHECK(plan_of({"--nnodes=2"}).rendezvous.spares == std::nullopt);
  CHECK(error({"--node-timeout=0"}) == "--node-timeout: 0 is not a positive number of seconds");
  CHECK(error({"--spares=-1"}) == "--spares: -1 is not a number of nodes");
}

TEST_CASE("rendezvous: an address that names no machine is refused at once, not waited for", "[plan]") {
  const auto launch_error = [](const std::string& address) {
    return error({"--num_machines=2", "--num_processes=2", "--machine_rank=1", "--main_process_ip", address},
                 Dialect::launch);
  };
  CHECK(launch_error("") ==
        "--main_process_ip: is empty (as in node0 or 10.0.0.1; the port is --main_process_port)");
  CHECK(
      launch_error("10.0.0.1:29500") ==
      "--main_process_ip: '10.0.0.1:29500' is not the name or address of a machine (as in node0 or 10.0.0.1; "
      "the port is --main_process_port)");
  CHECK(launch_error("http://h").starts_with("--main_process_ip: 'http://h' is not"));
  CHECK(error({"--nnodes=2", "--master-addr="}) ==
        "--master-addr: is empty (as in node0 or 10.0.0.1; the port is --master-port)");
  CHECK(error({"--master-addr="}).starts_with("--master-addr: is empty"));
  CHECK(plan_of({"--nnodes=2", "--master-addr", "localhost "}).rendezvous.endpoint_host == "localhost");
  CHECK(plan_of({"--nnodes=2", "--master-addr=[::1]"}).master_addr == "::1");
  const acc::launcher::Value file = {{"num_machines", 2}, {"num_processes", 2}, {"main_process_ip", ""}};
  CHECK(acc::test::error_of([&] { launch_plan({"--cpu"}, file); }).find(": is empty") != std::string::npos);
}

TEST_CASE("rendezvous: a local address is one, unless nothing uses it", "[plan]") {
  const std::vector<std::string> c10d = {"--nnodes=2", "--rdzv-backend=c10d", "--local-addr"};
  const auto with = [&](const std::string& address) {
    std::vector<std::string> words = c10d;
    words.push_back(address);
    return words;
  };
  CHECK(error(with("127.0.0.1:5")) ==
        "--local-addr: '127.0.0.1:5' is not the name or address of a machine (as in node0 or 10.0.0.1; "
        "without a "
        "port)");
  CHECK(error(with("http://x")).starts_with("--local-addr: 'http://x' is not"));
  CHECK(plan_of(with("")).rendezvous.local_addr.empty());
  CHECK(plan_of(with("[::1]")).rendezvous.local_addr == "::1");
  const LaunchPlan plan = plan_of({"--nnodes=2", "--master-addr=node0", "--local-addr=10.0.0.1 10.0.0.2"});
  CHECK(plan.rendezvous.local_addr.empty());
  CHECK(plan.notes ==
        std::vector<std::string>{"--local-addr: '10.0.0.1 10.0.0.2' is not an address, and has no effect"});
}

TEST_CASE("rendezvous: accelerate's file names machine 0 and the back end", "[plan]") {
  acc::launcher::Value file = {{"distributed_type", "MULTI_CPU"},
                               {"num_machines", 2},
                               {"num_processes", 4},
                               {"machine_rank", 1},
                               {"main_process_ip", "10.0.0.5"}};
  CHECK(launch_plan({}, file).rendezvous.endpoint_port == 29500);
  file["main_process_port"] = 29777;
  file["rdzv_backend"] = "c10d";
  const LaunchPlan plan = launch_plan({}, file);
  CHECK(plan.rendezvous.backend == RendezvousKind::c10d);
  CHECK(plan.rendezvous.endpoint_host == "10.0.0.5");
  CHECK(plan.rendezvous.endpoint_port == 29777);
  CHECK(plan.nproc_per_node == 2);
  CHECK(error({"--nnodes", "2", "--nproc-per-node", "1"}, Dialect::launch) ==
        "--nnodes: 2 machines need the address of machine 0 (--main_process_ip, and --main_process_port)");
}

TEST_CASE("rendezvous: invalid settings are refused, also for one machine", "[plan]") {
  CHECK(error({"--rdzv-backend=c10", "--rdzv-endpoint=x"}) ==
        "--rdzv-backend: 'c10' is not a rendezvous back end (static, c10d or etcd; did you mean 'c10d'?)");
  CHECK(error({"--rdzv-backend=etcd-v2"}) ==
        "--rdzv-backend: etcd-v2 uses an API that etcd no longer has (use etcd, or c10d)");
  CHECK(error({"--rdzv-endpoint=node0"}) ==
        "--rdzv-endpoint: the port is missing in endpoint 'node0' "
        "(the static rendezvous needs one, as in node0:29500)");
  CHECK(error({"--rdzv-conf=a"}).starts_with("--rdzv-conf: 'a' is not key=value"));
  CHECK(error({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"}) ==
        "--rdzv-endpoint: several machines cannot meet at port 0 (a port that all of them know)");
  CHECK(error({"--nnodes=2", "--master-addr=a", "--master-port=0"})
            .starts_with("--master-port: several machines cannot meet at port 0"));
  CHECK(error({"--nnodes=2", "--rdzv-id="}) ==
        "--rdzv-id: the run needs an id, the same on all machines (as in --rdzv-id job7)");
  const std::string latin1 = "t\xfcr";
  CHECK(error({"--nnodes=2", "--rdzv-endpoint", "node0:29603", "--rdzv-id", latin1}) ==
        "--rdzv-id: the id of a run of several machines must be UTF-8 (as in --rdzv-id job7)");
  CHECK(plan_of({"--nnodes=2", "--rdzv-endpoint", "node0:29603", "--rdzv-id", "tür"}).run_id == "tür");
  CHECK(plan_of({"--rdzv-id", latin1}).run_id == latin1);
}

TEST_CASE("rendezvous: TORCH_DISABLE_SHARE_RDZV_TCP_STORE leaves the store to the workers, as in torchrun",
          "[plan]") {
  const auto served = [](const std::vector<std::string>& words, const std::string& value) {
    acc::launcher::LaunchInputs launch_inputs = inputs(words, Dialect::torchrun);
    launch_inputs.environment.set("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", value);
    return resolve(launch_inputs).use_agent_store;
  };
  CHECK_FALSE(served({"--standalone", "train.py"}, "1"));
  CHECK_FALSE(served({"--rdzv-backend=c10d", "train.py"}, "1"));
  CHECK(served({"--standalone", "train.py"}, "true"));
  CHECK(served({"train.py"}, "1"));
}

TEST_CASE("rendezvous: a run on one machine with an empty name gets one", "[plan]") {
  CHECK(plan_of({"--rdzv-id="}).run_id == "random");
}

TEST_CASE("rendezvous: nodes may meet in a file, which the endpoint names", "[plan]") {
  const auto in_file = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file"});
    return words;
  };
  CHECK(plan_of(in_file({"--nnodes", "2", "--rdzv-endpoint", " shared/../job7 "})).rendezvous.store_file ==
        "/job/job7");
  CHECK(plan_of(in_file({"--rdzv-endpoint", "/shared/a:b"})).rendezvous.store_file == "/shared/a:b");
  CHECK_FALSE(plan_of(in_file({})).rendezvous.store_file.has_value());
  CHECK(
      error(in_file({"--nnodes", "2"})) ==
      "--rdzv-conf: store_type=file needs a file that all machines see (as in --rdzv-endpoint /shared/job7)");
  CHECK(error({"--rdzv-backend", "c10d", "--rdzv-endpoint", "/f", "--rdzv-conf",
               "store_type=file,torch_version=2.5"})
            .starts_with("--rdzv-conf: agents of torch 2.4 and 2.5 meet in a TCP store only"));
}

TEST_CASE("rendezvous: c10d keeps the endpoint of one machine, which may be another's", "[plan]") {
  const RendezvousPlan plan =
      plan_of({"--rdzv-backend", "c10d", "--rdzv-endpoint", "node0", "--rdzv-conf", "is_host=0"}).rendezvous;
  CHECK(plan.endpoint_host == "node0");
  CHECK(plan.endpoint_port == 29400);
  CHECK(plan.is_host == false);
  CHECK(plan_of({"--rdzv-endpoint", "node0:1"}).rendezvous.endpoint_host.empty());
}

TEST_CASE("rendezvous: a silent node is lost sooner where the job can go on", "[plan]") {
  const RendezvousPlan fixed = plan_of({"--nnodes=2", "--rdzv-backend=c10d"}).rendezvous;
  const RendezvousPlan range = plan_of({"--nnodes=1:2", "--rdzv-backend=c10d"}).rendezvous;
  CHECK(fixed.survives_loss(1));
  CHECK_FALSE(fixed.survives_loss(0));
  CHECK(range.survives_loss(0));
  CHECK(fixed.timeout_of_node(true) == 15s);
  CHECK(fixed.timeout_of_node(false) == 60s);
  const RendezvousPlan asked = plan_of({"--nnodes=2", "--node-timeout=4"}).rendezvous;
  CHECK(asked.timeout_of_node(true) == 4s);
  CHECK(asked.timeout_of_node(false) == 4s);
}

namespace {

LaunchPlan plan_with_secret(const std::string& conf) {
  acc::launcher::LaunchInputs launch_inputs = inputs(
      {"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node0", "--rdzv-conf=" + conf, "train.py"},
      Dialect::torchrun);
  launch_inputs.folder = "/jobs";
  launch_inputs.environment.set("ACC_JOB_SECRET", "0123456789abcdef");
  return resolve(launch_inputs);
}

}  // namespace

TEST_CASE("rendezvous: the secret of the job is the rendezvous's alone: no worker inherits it", "[plan]") {
  const LaunchPlan plan = plan_with_secret("join_timeout=60");
  CHECK(plan.rendezvous.secret == "0123456789abcdef");
  CHECK_FALSE(plan.inherited.contains("ACC_JOB_SECRET"));
  CHECK_FALSE(plan.environment.contains("ACC_JOB_SECRET"));
}

TEST_CASE("rendezvous: a secret comes from a file or from the variable", "[plan]") {
  const std::vector<std::string> words = {"--nnodes=2", "--rdzv-endpoint=node0:1"};
  const auto with = [&](const std::string& conf) {
    std::vector<std::string> all = words;
    all.push_back("--rdzv-conf=" + conf);
    return plan_of(all).rendezvous;
  };
  CHECK(with("secret_file=/etc/secret").secret_file == "/etc/secret");
  CHECK(with("secret_file=secret").secret_file.is_absolute());
  CHECK_FALSE(with("secret_file=secret").secret);
  CHECK(acc::test::error_of([] { plan_with_secret("secret_file=x"); }) ==
        "--rdzv-conf: secret_file and ACC_JOB_SECRET both name a secret (give one of them)");
}

TEST_CASE("rendezvous: nodes that meet in a file have no connections", "[plan]") {
  const LaunchPlan plan = plan_of({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=/shared/job7",
                                   "--rdzv-conf=store_type=file,secret_file=/etc/secret"});
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes[0].find("secret_file has no effect with store_type=file") != std::string::npos);
}

}  // namespace rendezvous_test
