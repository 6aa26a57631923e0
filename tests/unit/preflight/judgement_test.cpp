// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/judgement.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "support/catch.hpp"
#include "support/observations.hpp"

namespace judgement_test {

using namespace acc::test;

namespace {

/// A change of healthy nodes, and the one finding that it must lead to.
struct Case {
  const char* name = "";
  std::function<void(Observations&)> change = {};
  Severity severity = Severity::warning;
  Check check = Check::presence;
  std::vector<int> nodes = {};
  std::string text = {};
  int num_nodes = 3;
};

void set_rate(Observations& seen, const std::function<bool(const Transfer&)>& which, double rate) {
  for (Transfer& one : seen.transfers)
    if (which(one)) one.bytes_per_second = rate;
}

void cut(Observations& seen, int from, int to) {
  for (ConnectionCheck& one : seen.connections)
    if (one.from == from && one.to == to) one.error = "no answer within 3 s";
}

void shift_clock(Observations& seen, int rank, double by) {
  for (ConnectionCheck& one : seen.connections) {
    if (one.to == rank) one.clock_offset += by;
    if (one.from == rank) one.clock_offset -= by;
  }
}

const std::vector<Case> kCases = {
    {"a node is missing",
     [](Observations& seen) { seen.nodes.erase(seen.nodes.begin() + 1); },
     Severity::error,
     Check::presence,
     {1},
     "node 1: took no part in the preflight"},
    {"a driver does not answer",
     [](Observations& seen) {
       seen.nodes[1].unanswered = {"the NVIDIA driver"};
       seen.nodes[1].gpus.clear();
       seen.nodes[1].driver.clear();
     },
     Severity::error,
     Check::answer,
     {1},
     "node1: the NVIDIA driver did not answer in time"},
    {"a disk does not answer",
     [](Observations& seen) {
       seen.nodes[1].unanswered = {"the disk of /tmp"};
       seen.nodes[1].free_disk_bytes.reset();
     },
     Severity::error,
     Check::answer,
     {1},
     "node1: the disk of /tmp did not answer in time"},
    {"a node does not report",
     [](Observations& seen) { seen.silent = {1}; },
     Severity::error,
     Check::presence,
     {1},
     "node1: did not report what it measured"},
    {"a resolver does not answer",
     [](Observations& seen) {
       seen.nodes[1].unanswered = {"the resolver for node0", "the resolver for node1"};
       seen.nodes[1].meeting.lookup = {};
       seen.nodes[1].own_name->lookup = {};
     },
     Severity::error,
     Check::answer,
     {1},
     "node1: the resolver for node0 and the resolver for node1 did not answer in time"},
    {"the only GPU of a node is lost, and so is its name",
     [](Observations& seen) {
       for (NodeHealth& node : seen.nodes) {
         node.gpus.pop_back();
         node.workers = 1;
       }
       seen.nodes[0].gpus[0].lost = true;
       seen.nodes[0].gpus[0].gpu.name.clear();
     },
     Severity::error,
     Check::devices,
     {0},
     "node0: GPU 0 (0000:10:00.0) does not answer its driver",
     2},
    {"a GPU less",
     [](Observations& seen) { seen.nodes[1].gpus.pop_back(); },
     Severity::error,
     Check::devices,
     {1},
     "node1: has 1 GPU, others have 2"},
    {"no driver",
     [](Observations& seen) {
       seen.nodes[2].gpus.clear();
       seen.nodes[2].driver.clear();
     },
     Severity::error,
     Check::devices,
     {2},
     "node2: has no NVIDIA driver, others have 2"},
    {"a lost GPU",
     [](Observations& seen) { seen.nodes[0].gpus[1].lost = true; },
     Severity::error,
     Check::devices,
     {0},
     "node0: GPU 1 (0000:11:00.0) does not answer its driver"},
    {"another kind of GPU",
     [](Observations& seen) { seen.nodes[2].gpus[1].gpu.name = "A100"; },
     Severity::warning,
     Check::devices,
     {2},
     "node2: GPU 1 is A100, others are H100"},
    {"another driver",
     [](Observations& seen) { seen.nodes[1].driver = "535.1"; },
     Severity::warning,
     Check::driver,
     {1},
     "node1: has the driver 535.1, others 550.54"},
    {"memory errors",
     [](Observations& seen) { seen.nodes[1].gpus[0].uncorrected_errors = 2; },
     Severity::error,
     Check::ecc,
     {1},
     "node1: GPU 0 (0000:10:00.0) has 2 uncorrected memory errors since its driver was loaded"},
    {"memory to replace",
     [](Observations& seen) { seen.nodes[1].gpus[0].needs_reset = true; },
     Severity::error,
     Check::ecc,
     {1},
     "node1: GPU 0 (0000:10:00.0) waits for a reset to replace memory with errors"},
    {"memory beyond repair",
     [](Observations& seen) { seen.nodes[1].gpus[0].needs_repair = true; },
     Severity::error,
     Check::ecc,
     {1},
     "node1: GPU 0 (0000:10:00.0) has no spare memory left for rows with errors"},
    {"a slowdown",
     [](Observations& seen) { seen.nodes[2].gpus[1].slowdowns = {"heat", "power brake"}; },
     Severity::error,
     Check::slowdown,
     {2},
     "node2: GPU 1 (0000:11:00.0) is slowed down by its hardware: heat, power brake"},
    {"a fault in the kernel log",
     [](Observations& seen) { seen.nodes[1].xids->push_back({79, "0000:10:00"}); },
     Severity::warning,
     Check::xid,
     {1},
     "node1: the kernel log has Xid 79 (fallen off the bus) of the GPU at 0000:10:00"},
    {"a GPU in use",
     [](Observations& seen) { seen.nodes[1].gpus[0].free_bytes = 20 * kGiB; },
     Severity::warning,
     Check::gpu_memory,
     {1},
     "node1: GPU 0 (0000:10:00.0) has 20 GiB of 80 GiB free"},
    {"less memory",
     [](Observations& seen) { seen.nodes[2].memory_bytes = 128 * kGiB; },
     Severity::warning,
     Check::memory,
     {2},
     "node2: has 128 GiB of memory, others 256 GiB"},
    {"a clock ahead",
     [](Observations& seen) { shift_clock(seen, 2, 4.2); },
     Severity::warning,
     Check::clock,
     {2},
     "node2: its clock is 4.2 s ahead of the others"},
    {"the clock of rank 0 behind",
     [](Observations& seen) { shift_clock(seen, 0, -60); },
     Severity::warning,
     Check::clock,
     {0},
     "node0: its clock is 60.0 s behind the others"},
    {"two clocks that differ",
     [](Observations& seen) { shift_clock(seen, 1, 5); },
     Severity::warning,
     Check::clock,
     {0, 1},
     "the clocks of node0 and node1 differ by 5.0 s",
     2},
    {"a full disk",
     [](Observations& seen) { seen.nodes[1].free_disk_bytes = 1024; },
     Severity::error,
     Check::disk,
     {1},
     "node1: only 1 KiB free in /tmp"},
    {"an almost full disk",
     [](Observations& seen) { seen.nodes[1].free_disk_bytes = kGiB / 2; },
     Severity::warning,
     Check::disk,
     {1},
     "node1: only 512 MiB free in /tmp"},
    {"a disk that cannot be written",
     [](Observations& seen) { seen.nodes[1].disk_error = "Permission denied"; },
     Severity::error,
     Check::disk,
     {1},
     "node1: /tmp: Permission denied"},
    {"a meeting address that does not resolve",
     [](Observations& seen) { seen.nodes[2].meeting.lookup = {.error = "Name or service not known"}; },
     Severity::error,
     Check::name,
     {2},
     "node2: 'node0' cannot be resolved: Name or service not known"},
    {"an own name that does not resolve",
     [](Observations& seen) { seen.nodes[1].own_name->lookup = {.error = "Name or service not known"}; },
     Severity::warning,
     Check::name,
     {1},
     "node1: its own name 'node1' cannot be resolved, so Gloo uses the loopback interface"},
    {"an own name that is loopback",
     [](Observations& seen) { seen.nodes[1].own_name->lookup = {.addresses = {"127.0.1.1"}}; },
     Severity::warning,
     Check::name,
     {1},
     "node1: its own name 'node1' is 127.0.1.1, where Gloo then waits in vain for other nodes"},
    {"a pair that is cut",
     [](Observations& seen) {
       cut(seen, 1, 2);
       cut(seen, 2, 1);
     },
     Severity::error,
     Check::connection,
     {1, 2},
     "node1 and node2 cannot connect to each other: no answer within 3 s"},
    {"a direction that is cut",
     [](Observations& seen) { cut(seen, 2, 0); },
     Severity::error,
     Check::connection,
     {2, 0},
     "node2 cannot connect to node0: no answer within 3 s"},
    {"a node behind a firewall",
     [](Observations& seen) {
       for (int from : {0, 2}) cut(seen, from, 1);
     },
     Severity::error,
     Check::connection,
     {1},
     "node1: no other node can connect to it"},
    {"a node that reaches nobody",
     [](Observations& seen) {
       for (int to : {0, 2}) cut(seen, 1, to);
     },
     Severity::error,
     Check::connection,
     {1},
     "node1: it can connect to no other node"},
    {"a slow sender",
     [](Observations& seen) { set_rate(seen, [](const Transfer& one) { return one.from == 1; }, 4e8); },
     Severity::warning,
     Check::bandwidth,
     {1},
     "node1: sends at 3.2 Gbit/s, the median is 8 Gbit/s"},
    {"a receiver that crawls",
     [](Observations& seen) { set_rate(seen, [](const Transfer& one) { return one.to == 2; }, 1e6); },
     Severity::error,
     Check::bandwidth,
     {2},
     "node2: receives at 8 Mbit/s, the median is 8 Gbit/s"},
    {"a slow pair",
     [](Observations& seen) {
       set_rate(seen, [](const Transfer& one) { return one.from == 0 && one.to == 2; }, 2e8);
     },
     Severity::warning,
     Check::bandwidth,
     {0, 2},
     "node0 sends to node2 at 1.6 Gbit/s, the median is 8 Gbit/s"},
    {"a slow direction of two nodes",
     [](Observations& seen) { set_rate(seen, [](const Transfer& one) { return one.from == 1; }, 1e6); },
     Severity::error,
     Check::bandwidth,
     {1, 0},
     "node1 sends to node0 at 8 Mbit/s, the median is 8 Gbit/s",
     2},
    {"a transfer that failed",
     [](Observations& seen) {
       seen.transfers[0].bytes_per_second.reset();
       seen.transfers[0].error = "ConnectionCheck reset by peer";
     },
     Severity::warning,
     Check::bandwidth,
     {0, 1},
     "node0 to node1: ConnectionCheck reset by peer"},
};

}  // namespace

TEST_CASE("judgement: nothing is found about healthy nodes", "[preflight]") {
  for (const int count : {1, 2, 3, 20}) CHECK(judge(healthy_nodes(count)).empty());
  CHECK_FALSE(has_errors({}));
}

TEST_CASE("judgement: names the outlier of each kind, once", "[preflight]") {
  for (const Case& one : kCases) {
    INFO(one.name);
    Observations seen = healthy_nodes(one.num_nodes);
    one.change(seen);
    const std::vector<Finding> findings = judge(seen);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].severity == one.severity);
    CHECK(to_string(findings[0].check) == std::string(to_string(one.check)));
    CHECK(findings[0].nodes == one.nodes);
    CHECK(findings[0].text == one.text);
    CHECK_FALSE(findings[0].hint.empty());
    CHECK(has_errors(findings) == (one.severity == Severity::error));
  }
}

TEST_CASE("judgement: a node may be meant to run fewer workers on fewer GPUs", "[preflight]") {
  Observations seen = healthy_nodes(3);
  seen.nodes[1].gpus.pop_back();
  seen.nodes[1].workers = 1;
  CHECK(judge(seen).empty());
}

TEST_CASE("judgement: programs' mistakes in the kernel log are not faults of a GPU", "[preflight]") {
  Observations seen = healthy_nodes(1);
  seen.nodes[0].xids = std::vector<Xid>{{13, "0000:10:00"}, {31, "0000:10:00"}, {43, "0000:10:00"}};
  CHECK(judge(seen).empty());
}

TEST_CASE("judgement: nodes of one machine need no name for Gloo", "[preflight]") {
  Observations seen = healthy_nodes(2);
  for (NodeHealth& node : seen.nodes) {
    node.address = "127.0.0.1";
    node.own_name->lookup = {.addresses = {"127.0.1.1"}};
  }
  CHECK(judge(seen).empty());
  for (NodeHealth& node : seen.nodes) {
    node.address = "10.0.0.10";
    node.host = "node0";
  }
  CHECK(judge(seen).empty());
}

TEST_CASE("judgement: errors come before warnings", "[preflight]") {
  Observations seen = healthy_nodes(2);
  seen.nodes[0].driver = "535.1";
  seen.nodes[1].disk_error = "Permission denied";
  const std::vector<Finding> findings = judge(seen);
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].check == Check::disk);
}

TEST_CASE("judgement: nodes of the same host are told apart by rank", "[preflight]") {
  Observations seen = healthy_nodes(2);
  seen.nodes[1].host = "node0";
  CHECK(name_of(seen, 1) == "node0 (node 1)");
  CHECK(name_of(seen, 7) == "node 7");
}

TEST_CASE("judgement: clocks are compared over nodes between, where one pair is cut", "[preflight]") {
  Observations seen = healthy_nodes(3);
  shift_clock(seen, 2, 10);
  cut(seen, 0, 2);
  cut(seen, 2, 0);
  const auto offsets = clock_offsets(seen);
  REQUIRE(offsets[2]);
  CHECK(*offsets[2] > 9.9);
}

TEST_CASE("judgement: of ranks that there are not a node says nothing about clocks", "[preflight]") {
  Observations seen = healthy_nodes(2);
  seen.connections.push_back({.from = 0, .to = 7, .clock_offset = 50});
  seen.connections.push_back({.from = -1, .to = 1, .clock_offset = 50});
  CHECK(clock_offsets(seen) == clock_offsets(healthy_nodes(2)));
}

TEST_CASE("judgement: rates and sizes are written with their units", "[preflight]") {
  CHECK(bit_rate(0) == "0 bit/s");
  CHECK(bit_rate(1.25e6) == "10 Mbit/s");
  CHECK(bit_rate(1.25e10) == "100 Gbit/s");
  CHECK(bit_rate(1.2499e8) == "1 Gbit/s");
  CHECK(bit_rate(1.2478e8) == "998 Mbit/s");
  CHECK(bit_rate(1.25e12) == "10 Tbit/s");
  CHECK(byte_size(512) == "512 B");
  CHECK(byte_size(3 * kGiB / 2) == "1.5 GiB");
  CHECK(byte_size(2048 * kGiB) == "2 TiB");
  CHECK(byte_size(20000 * 1024 * kGiB) == "19.53 PiB");  // a cluster's file system
}

TEST_CASE("judgement: pairs with a slow transfer are measured again, and the better speed counts",
          "[preflight]") {
  Observations seen = healthy_nodes(4);
  CHECK(slow_pairs(seen).empty());
  set_rate(seen, [](const Transfer& one) { return one.from == 3 && one.to == 1; }, 1e6);
  set_rate(seen, [](const Transfer& one) { return one.from == 0 && one.to == 2; }, 4e8);
  CHECK(slow_pairs(seen) == std::set<std::pair<int, int>>{{0, 2}, {1, 3}});
  keep_better(seen.transfers, {{.from = 3, .to = 1, .bytes_per_second = 9e8},
                               {.from = 1, .to = 3, .bytes_per_second = 2},
                               {.from = 0, .to = 2, .error = "did not come to the measurement"}});
  CHECK(slow_pairs(seen) == std::set<std::pair<int, int>>{{0, 2}});
  REQUIRE(judge(seen).size() == 1);
  CHECK(judge(seen)[0].severity == Severity::warning);
}

TEST_CASE("judgement: what a node reports that stopped reporting is not measured again", "[preflight]") {
  Observations seen = healthy_nodes(3);
  set_rate(seen, [](const Transfer& one) { return one.from == 1; }, 1e6);
  seen.silent = {1};
  CHECK(slow_pairs(seen).empty());
  // From another node of the job, which may say anything.
  seen.transfers.push_back({.from = -1, .to = 7, .bytes_per_second = 1});
  seen.transfers.push_back({.from = 2, .to = 2, .bytes_per_second = 1});
  CHECK(slow_pairs(seen).empty());
}

}  // namespace judgement_test
