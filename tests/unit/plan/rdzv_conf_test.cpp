// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/rendezvous.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace rdzv_conf_test {

using acc::launcher::RendezvousKind;
using acc::launcher::RendezvousPlan;
using namespace std::chrono_literals;

namespace {

struct Applied {
  RendezvousPlan plan = {};
  std::vector<std::string> notes = {};
};

Applied apply(const std::string& text, RendezvousKind backend) {
  Applied applied{.plan = {.backend = backend}};
  acc::launcher::apply_rdzv_conf(text, "--rdzv-conf", applied.plan, applied.notes);
  return applied;
}

std::string error(const std::string& text, RendezvousKind backend = RendezvousKind::c10d) {
  return acc::test::error_of([&] { apply(text, backend); });
}

}  // namespace

TEST_CASE("rdzv_conf: every key of c10d has its field in the plan", "[plan]") {
  const Applied applied = apply(
      "join_timeout=1, last_call_timeout=2,close_timeout = 3,keep_alive_interval=4,"
      "keep_alive_max_attempt=5,read_timeout=6,is_host=Yes,store_type=tcp",
      RendezvousKind::c10d);
  CHECK(applied.plan == RendezvousPlan{.backend = RendezvousKind::c10d,
                                       .is_host = true,
                                       .join_timeout = 1s,
                                       .last_call_timeout = 2s,
                                       .close_timeout = 3s,
                                       .keep_alive_interval = 4s,
                                       .keep_alive_max_attempt = 5,
                                       .read_timeout = 6s,
                                       .endpoint_timeout = 6s});
  CHECK(applied.notes.empty());
}

TEST_CASE("rdzv_conf: every key of etcd has its field in the plan", "[plan]") {
  const Applied applied =
      apply("timeout=1,last_call_timeout=2,etcd_prefix=/p,protocol=https,cert=a,key=b,cacert=c",
            RendezvousKind::etcd);
  CHECK(applied.plan == RendezvousPlan{.backend = RendezvousKind::etcd,
                                       .join_timeout = 1s,
                                       .last_call_timeout = 2s,
                                       .etcd_prefix = "/p",
                                       .protocol = "https",
                                       .cert = "a",
                                       .key = "b",
                                       .cacert = "c"});
}

TEST_CASE("rdzv_conf: torch_version says how nodes of torchrun meet", "[plan]") {
  const auto agents = [](const std::string& version) {
    return rdzv_conf_test::apply("torch_version=" + version, RendezvousKind::c10d).plan.agents;
  };
  CHECK(agents("2.4") == acc::launcher::TorchAgents::v2_4);
  CHECK(agents("2.4.1+cpu") == acc::launcher::TorchAgents::v2_4);
  CHECK(agents("2.5.1") == acc::launcher::TorchAgents::v2_5);
  CHECK(agents("2.11.0+cu130") == acc::launcher::TorchAgents::v2_6);
  CHECK(agents("3.4") == acc::launcher::TorchAgents::v2_6);
  for (const std::string version : {"2.3", "1.13", "3", "x.4"}) {
    CHECK(error("torch_version=" + version).find("'" + version + "' is not torch 2.4 or a later version") !=
          std::string::npos);
  }
}

TEST_CASE("rdzv_conf: keys that only torchrun needs are validated, with a note", "[plan]") {
  CHECK(apply("cas_backoff_max_seconds=0.5", RendezvousKind::c10d).notes.size() == 1);
  CHECK(apply("heartbeat_timeout=5", RendezvousKind::c10d).notes.size() == 1);
  CHECK(error("cas_backoff_max_seconds=-1").find("'-1' is not a non-negative number of seconds") !=
        std::string::npos);
}

TEST_CASE("rdzv_conf: the static rendezvous has one key, timeout", "[plan]") {
  CHECK(apply("timeout=7", RendezvousKind::static_).plan.join_timeout == 7s);
}

TEST_CASE("rdzv_conf: empty text changes nothing", "[plan]") {
  CHECK(apply(" ", RendezvousKind::c10d).plan == RendezvousPlan{.backend = RendezvousKind::c10d});
}

TEST_CASE("rdzv_conf: a key of another back end is validated, with a note that it has no effect", "[plan]") {
  const Applied applied = apply("timeout=7", RendezvousKind::c10d);
  CHECK(applied.plan == RendezvousPlan{.backend = RendezvousKind::c10d});
  CHECK(applied.notes ==
        std::vector<std::string>{"--rdzv-conf: timeout has no effect with the back end c10d"});
  CHECK(error("timeout=x") == "--rdzv-conf: timeout: 'x' is not a positive whole number of seconds");
}

TEST_CASE("rdzv_conf: all invalid values are reported together", "[plan]") {
  CHECK(error("join_timeout=1.5,read_timeout=0,is_host=maybe,keep_alive_max_attempt=0,store_type=redis") ==
        "--rdzv-conf: join_timeout: '1.5' is not a positive whole number of seconds\n"
        "--rdzv-conf: read_timeout: '0' is not a positive whole number of seconds\n"
        "--rdzv-conf: is_host: 'maybe' is neither true nor false\n"
        "--rdzv-conf: keep_alive_max_attempt: '0' is not a positive whole number\n"
        "--rdzv-conf: store_type: 'redis' is neither tcp nor file");
  CHECK(error("protocol=ftp", RendezvousKind::etcd) ==
        "--rdzv-conf: protocol: 'ftp' is neither http nor https");
  for (const auto* text : {"a", "=1", "join_timeout="}) {
    CHECK(error(text) ==
          "--rdzv-conf: '" + std::string(text) + "' is not key=value (as in join_timeout=600,is_host=true)");
  }
}

TEST_CASE("rdzv_conf: an unknown key is an error with the nearest, one that has a flag names it", "[plan]") {
  CHECK(error("join_timout=1") == "--rdzv-conf: unknown key 'join_timout' (did you mean 'join_timeout'?)");
  CHECK(error("zebra=1").starts_with("--rdzv-conf: unknown key 'zebra' (known are timeout, join_timeout, "));
  CHECK(error("rank=1", RendezvousKind::static_) ==
        "--rdzv-conf: key 'rank' does not belong here (use --node-rank)");
  for (const auto* key : {"backend", "endpoint", "run_id", "min_nodes", "max_nodes", "local_addr"}) {
    CHECK(error(std::string(key) + "=1").find("does not belong here") != std::string::npos);
  }
}

TEST_CASE("rdzv_conf: the store's type in any case, and quotes around the whole", "[plan]") {
  CHECK_FALSE(apply("store_type=tCp", RendezvousKind::c10d).plan.store_file.has_value());
  CHECK(apply("store_type=File", RendezvousKind::c10d).plan.store_file == std::filesystem::path());
  CHECK_FALSE(apply("store_type=file", RendezvousKind::static_).plan.store_file.has_value());
  for (const char quote : {'"', '\''}) {
    const std::string text = quote + std::string(" join_timeout=7,is_host=true ") + quote;
    const RendezvousPlan plan = apply(text, RendezvousKind::c10d).plan;
    CHECK(plan.join_timeout == 7s);
    CHECK(plan.is_host == true);
  }
  CHECK(apply("''", RendezvousKind::c10d).plan == RendezvousPlan{.backend = RendezvousKind::c10d});
  CHECK(error("\"join_timeout=7").starts_with("--rdzv-conf: unknown key '\"join_timeout'"));
}

}  // namespace rdzv_conf_test
