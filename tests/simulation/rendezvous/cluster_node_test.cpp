// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/cluster_node.hpp"

#include <cstdlib>
#include <iostream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "simulation/job.hpp"
#include "support/catch.hpp"

namespace {

using namespace simulation;
using namespace std::chrono_literals;
using Kind = Fault::Kind;

std::uint64_t number_of(const char* variable, std::uint64_t default_value) {
  const char* text = std::getenv(variable);
  return text == nullptr ? default_value : std::stoull(text);
}

// That of ACC_BACKEND.
std::optional<Backend> chosen_backend() {
  const char* name = std::getenv("ACC_BACKEND");
  if (name == nullptr) return std::nullopt;
  for (const Backend backend : {Backend::c10d, Backend::static_, Backend::etcd, Backend::file})
    if (name == std::string_view(name_of(backend))) return backend;
  FAIL("ACC_BACKEND is c10d, static, etcd or file");
  return std::nullopt;
}

// What a person needs to look into it: the schedule without the faults that are not needed.
std::string report(const Schedule& failed, const std::string& violation) {
  const Schedule schedule = shortened(failed);
  return violation + "\nagain: ACC_SEED=" + std::to_string(failed.seed) +
         " ACC_BACKEND=" + name_of(failed.backend) + "\nshortened " + to_text(schedule) +
         "\nfails with: " + simulate(schedule).violation;
}

// An elastic job of nodes on machines of their own, which start one after the other.
Schedule job_of(int nodes, std::vector<Fault> faults) {
  Schedule schedule = {.seed = 1,
                       .nodes = nodes,
                       .machines = nodes,
                       .min_nodes = 1,
                       .max_nodes = nodes,
                       .node_timeout = 3s,
                       .join_timeout = 60s,
                       .last_call = 1s,
                       .work = 60s,
                       .faults = std::move(faults)};
  for (int node = 0; node < nodes; ++node) schedule.starts.push_back(node * 100ms);
  return schedule;
}

void check_seeds(std::uint64_t first, std::uint64_t count, std::optional<Backend> backend = {}) {
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Schedule schedule = draw_schedule(seed, backend);
    const Outcome outcome = simulate(schedule);
    done += outcome.is_done ? 1 : 0;
    if (outcome.violation.empty()) continue;
    UNSCOPED_INFO(report(schedule, outcome.violation));
    CHECK(outcome.violation.empty());
    if (++failed == 10) break;
  }
  CAPTURE(done);
  CHECK(done > count / 4);
}

}  // namespace

TEST_CASE("simulation: equal seeds give equal traces", "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = simulate(draw_schedule(seed), true);
    const Outcome second = simulate(draw_schedule(seed), true);
    CHECK(!first.trace.empty());
    CHECK(first.trace == second.trace);
  }
}

TEST_CASE("simulation: promises are kept whatever happens to nodes and network", "[simulation]") {
  check_seeds(1, 5000);
}

TEST_CASE("simulation: a part that was cut off does not take the silent coordinator's end for its leave",
          "[simulation]") {
  for (const std::uint64_t seed : {27343, 36969}) check_seeds(seed, 1);
}

TEST_CASE("simulation: a node does not leave its job for a host that was started anew", "[simulation]") {
  check_seeds(37549, 1);
}

TEST_CASE("simulation: what a silent host may have gone on with is a part of the job when the host is back",
          "[simulation]") {
  const int neighbour = GENERATE(1, 2, 3);
  const Schedule schedule =
      job_of(4, {{.kind = Kind::split, .at = 5s, .duration = 15s, .other = 1 | 1 << neighbour},
                 {.kind = Kind::kill, .at = 17s, .duration = 4s, .node = 0},
                 {.kind = Kind::isolation, .at = 19s, .duration = 30s, .node = neighbour}});
  INFO(to_text(schedule));
  CHECK(simulate(schedule).violation.empty());
}

TEST_CASE("simulation: nobody goes on with a round whose leader has joined a job that was begun anew",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Schedule schedule =
        job_of(4, {{.kind = Kind::slowness, .at = 7s, .duration = 32s, .node = 2},
                   {.kind = Kind::cut_one_way, .at = 10s, .duration = 10s, .node = 3, .other = 1},
                   {.kind = Kind::kill, .at = 12s, .duration = 800ms, .node = 0},
                   {.kind = Kind::kill, .at = 19s, .duration = 2s, .node = 0}});
    schedule.seed = seed;
    schedule.max_restarts = 3;
    schedule.node_timeout = 6s;
    schedule.last_call = 3900ms;
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

TEST_CASE("simulation: a spare does not begin anew while nodes that it does not know may go on",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Schedule schedule = job_of(3, {{.kind = Kind::muteness, .at = 9s, .duration = 3s, .node = 1},
                                   {.kind = Kind::slowness, .at = 14s, .duration = 18s, .node = 2},
                                   {.kind = Kind::kill, .at = 22s, .duration = 7s, .node = 0}});
    schedule.seed = seed;
    schedule.max_nodes = 2;
    schedule.max_restarts = 1;
    schedule.node_timeout = 2500ms;
    schedule.starts = {0ms, 200ms, 7600ms};
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

TEST_CASE("simulation: nobody waits for a successor that was dropped", "[simulation]") {
  check_seeds(25819, 1);
}

TEST_CASE("simulation: nodes that come back to a job that is over hear how it ended", "[simulation]") {
  check_seeds(32627, 1);
}

// Of two nodes, the one that took over from the host loses its power, or is killed when it is out of reach;
// the other may have a spare beside it, at the endpoint.
TEST_CASE(
    "simulation: the last node of a round goes on when its silent leader has ended, and others can find it",
    "[simulation]") {
  Schedule power_loss = job_of(2, {{.kind = Kind::kill, .at = 5s, .duration = 1s, .node = 0},
                                   {.kind = Kind::power_loss, .at = 15s, .duration = 20s, .node = 1}});
  Schedule cut = job_of(2, {{.kind = Kind::kill, .at = 5s, .duration = 2s, .node = 0},
                            {.kind = Kind::cut, .at = 15s, .duration = 4s, .node = 0, .other = 1},
                            {.kind = Kind::kill, .at = 17s, .duration = 3s, .node = 1}});
  Schedule spare = job_of(3, {{.kind = Kind::kill, .at = 9071ms, .duration = 2597ms, .node = 0},
                              {.kind = Kind::power_loss, .at = 13783ms, .duration = 24444ms, .node = 1}});
  spare.max_nodes = 2;
  spare.starts = {5s, 0ms, 7s};
  for (Schedule* schedule : {&power_loss, &cut, &spare}) {
    schedule->node_timeout = 6s;
    schedule->max_restarts = 4;
    INFO(to_text(*schedule));
    const Outcome outcome = simulate(*schedule, /*with_trace=*/true);
    INFO(outcome.trace);
    CHECK(outcome.violation.empty());
    CHECK(outcome.is_done);
    // A spare that is left when the others have succeeded finds nobody.
    if (schedule != &spare) CHECK(outcome.trace.find("ends with 75") == std::string::npos);
  }
}

// The host is killed, and the node that took over cannot hear the others, or be heard: it yields to one of
// them, which it has dropped, or which asks it.
TEST_CASE("simulation: a leader that yields to a node which does not lead is still found by the others",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Schedule deaf = job_of(4, {{.kind = Kind::kill, .at = 6141ms, .duration = 3653ms, .node = 0},
                               {.kind = Kind::cut, .at = 7776ms, .duration = 7542ms, .node = 0, .other = 2},
                               {.kind = Kind::deafness, .at = 11363ms, .duration = 4124ms, .node = 1},
                               {.kind = Kind::split, .at = 12009ms, .duration = 233ms, .other = 11}});
    deaf.node_timeout = 4193ms;
    deaf.starts = {285ms, 435ms, 180ms, 304ms};
    Schedule mute = job_of(4, {{.kind = Kind::kill, .at = 2816ms, .duration = 129ms, .node = 0},
                               {.kind = Kind::muteness, .at = 9859ms, .duration = 16674ms, .node = 1}});
    mute.node_timeout = 2438ms;
    mute.starts = {301ms, 315ms, 274ms, 9833ms};
    for (Schedule* schedule : {&deaf, &mute}) {
      schedule->seed = seed;
      schedule->min_nodes = 3;
      schedule->max_restarts = 4;
      INFO(to_text(*schedule));
      const Outcome outcome = simulate(*schedule);
      CHECK(outcome.violation.empty());
      CHECK(outcome.is_done);
    }
  }
}

// It is killed on a machine whose other node goes on with what they have begun, and started again there.
TEST_CASE("simulation: a node that ends may have gone on with one that is found to be silent later",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Schedule schedule =
        job_of(3, {{.kind = Kind::deafness, .at = 6276ms, .duration = 2424ms, .node = 2},
                   {.kind = Kind::kill, .at = 8814ms, .duration = 1101ms, .node = 2},
                   {.kind = Kind::etcd_muteness, .at = 9401ms, .duration = 1153ms, .node = 2}});
    schedule.seed = seed;
    schedule.backend = Backend::etcd;
    schedule.machines = 2;
    schedule.node_timeout = 2036ms;
    schedule.last_call = 259ms;
    schedule.starts = {405ms, 43ms, 60ms};
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

TEST_CASE("simulation: who has asked a node that has ended since counts again, whichever is known first",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Schedule schedule = job_of(3, {{.kind = Kind::deafness, .at = 14229ms, .duration = 1755ms, .node = 0},
                                   {.kind = Kind::blinking, .at = 16920ms, .duration = 2216ms, .node = 2},
                                   {.kind = Kind::split, .at = 18310ms, .duration = 1875ms, .other = 6},
                                   {.kind = Kind::kill, .at = 19780ms, .duration = 1964ms, .node = 1}});
    schedule.seed = seed;
    schedule.node_timeout = 2952ms;
    INFO(to_text(schedule));
    const Outcome outcome = simulate(schedule);
    CHECK(outcome.violation.empty());
    CHECK(outcome.is_done);
  }
}

// Half of the nodes begins a round, of which one of them does not hear: it counts for the other half.
TEST_CASE(
    "simulation: a node that does not hear of a round's begin is missed with those that were absent then",
    "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Schedule schedule =
        job_of(4, {{.kind = Kind::muteness, .at = 5830ms, .duration = 13361ms, .node = 2},
                   {.kind = Kind::cut, .at = 13358ms, .duration = 52757ms, .node = 0, .other = 1},
                   {.kind = Kind::deafness, .at = 18905ms, .duration = 39705ms, .node = 0},
                   {.kind = Kind::isolation, .at = 19153ms, .duration = 22324ms, .node = 3}});
    schedule.seed = seed;
    schedule.node_timeout = 7531ms;
    schedule.join_timeout = 100s;
    schedule.starts = {215ms, 4292ms, 262ms, 23ms};
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

TEST_CASE("simulation: at etcd, a node does not leave its job for one that took the key when it was free",
          "[simulation]") {
  Schedule schedule = job_of(3, {{.kind = Kind::isolation, .at = 5s, .duration = 20s, .node = 0}});
  schedule.backend = Backend::etcd;
  schedule.node_timeout = 5s;
  schedule.starts = {0ms, 100ms, 12s};
  INFO(to_text(schedule));
  CHECK(simulate(schedule).violation.empty());
}

TEST_CASE("simulation: at etcd, a host with too few nodes for a round leaves the key to those who begin anew",
          "[simulation]") {
  Schedule schedule = job_of(3, {{.kind = Kind::isolation, .at = 5s, .duration = 25s, .node = 0}});
  schedule.backend = Backend::etcd;
  schedule.min_nodes = schedule.max_nodes = 2;
  schedule.max_restarts = 3;
  schedule.starts = {0ms, 9s, 100ms};
  INFO(to_text(schedule));
  const Outcome outcome = simulate(schedule, /*with_trace=*/true);
  INFO(outcome.trace);
  CHECK(outcome.violation.empty());
  CHECK(outcome.is_done);
  CHECK(outcome.trace.find("it is taken back") == std::string::npos);
}

TEST_CASE("simulation: a leader that is mute hears that it was left, however many packets are lost",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Schedule schedule = job_of(3, {{.kind = Kind::loss, .at = 4s, .duration = 30s},
                                   {.kind = Kind::muteness, .at = 6s, .duration = 8s, .node = 0}});
    schedule.seed = seed;
    schedule.node_timeout = 7s;
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

TEST_CASE("simulation: a leader that was left behind does not begin anew with a host that knows of no job",
          "[simulation]") {
  const bool is_etcd = GENERATE(true, false);
  // The host is left behind, as its key lapses; or the node that succeeded the host.
  const Schedule at_etcd = {
      .seed = 1,
      .backend = Backend::etcd,
      .nodes = 4,
      .machines = 4,
      .min_nodes = 1,
      .max_nodes = 4,
      .node_timeout = 3s,
      .join_timeout = 60s,
      .last_call = 1s,
      .work = 60s,
      .starts = {0ms, 100ms, 200ms, 16s},
      .faults = {{.kind = Kind::split, .at = 5s, .duration = 30s, .other = 1 << 1 | 1 << 2},
                 {.kind = Kind::etcd_cut, .at = 9s, .duration = 8s, .node = 0}}};
  const Schedule at_endpoint = {
      .seed = 1,
      .nodes = 5,
      .machines = 5,
      .min_nodes = 1,
      .max_nodes = 5,
      .node_timeout = 3s,
      .join_timeout = 60s,
      .last_call = 1s,
      .work = 60s,
      .starts = {0ms, 100ms, 200ms, 300ms, 400ms},
      .faults = {{.kind = Kind::kill, .at = 5s, .duration = 11s, .node = 0},
                 {.kind = Kind::split, .at = 8s, .duration = 30s, .other = 1 << 2 | 1 << 3 | 1 << 4}}};
  const Schedule& schedule = is_etcd ? at_etcd : at_endpoint;
  INFO(to_text(schedule));
  const Outcome outcome = simulate(schedule, true);
  INFO(outcome.trace);
  CHECK(outcome.violation.empty());
}

TEST_CASE("simulation: nodes that did not hear of a round's begin are not missed when they are back",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Schedule schedule = {
        .seed = seed,
        .nodes = 4,
        .machines = 4,
        .min_nodes = 3,
        .max_nodes = 4,
        .max_restarts = 1,
        .node_timeout = 2500ms,
        .join_timeout = 58s,
        .last_call = 2500ms,
        .work = 28s,
        .starts = {50ms, 450ms, 9250ms, 280ms},
        .faults = {{.kind = Kind::muteness, .at = 9420ms, .duration = 3850ms, .node = 0}}};
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

TEST_CASE(
    "simulation: nodes that ended while they were silent may have gone on with one that is silent still",
    "[simulation]") {
  Schedule schedule = job_of(3, {{.kind = Kind::isolation, .at = 5s, .duration = 20s, .node = 0},
                                 {.kind = Kind::kill, .at = 14s, .duration = 12s, .node = 1},
                                 {.kind = Kind::isolation, .at = 24s, .duration = 30s, .node = 2}});
  schedule.work = 200s;
  INFO(to_text(schedule));
  CHECK(simulate(schedule).violation.empty());
}

TEST_CASE(
    "simulation: a node that a successor finds to have ended may have gone on with one that is silent still",
    "[simulation]") {
  Schedule schedule = job_of(4, {{.kind = Kind::kill, .at = 5s, .node = 0},
                                 {.kind = Kind::isolation, .at = 12s, .duration = 15s, .node = 1},
                                 {.kind = Kind::kill, .at = 22s, .node = 2},
                                 {.kind = Kind::isolation, .at = 26s, .duration = 30s, .node = 3}});
  schedule.backend = GENERATE(Backend::c10d, Backend::etcd);
  schedule.work = 200s;
  INFO(to_text(schedule));
  CHECK(simulate(schedule).violation.empty());
}

TEST_CASE("simulation: of two nodes of a machine that are back, neither is taken for the end of the other",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Schedule schedule = job_of(5, {{.kind = Kind::deafness, .at = 5s, .duration = 15s, .node = 0},
                                   {.kind = Kind::power_loss, .at = 12s, .node = 2}});
    schedule.seed = seed;
    schedule.machines = 3;
    schedule.work = 100s;
    INFO(to_text(schedule));
    const Outcome outcome = simulate(schedule);
    CHECK(outcome.violation.empty());
    CHECK(outcome.is_done);
  }
}

TEST_CASE(
    "simulation: a successor does not yield to the coordinator that it has replaced, whoever has the key",
    "[simulation]") {
  for (Duration lapse = 8s; lapse <= 12s; lapse += 100ms) {
    Schedule schedule = job_of(3, {{.kind = Kind::isolation, .at = 5s, .duration = 3800ms, .node = 0},
                                   {.kind = Kind::etcd_lapse, .at = lapse}});
    schedule.backend = Backend::etcd;
    schedule.min_nodes = 2;
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

TEST_CASE("simulation: in a file, a node that dies while it writes is a lost node to the others",
          "[simulation]") {
  const Kind kind = GENERATE(Kind::file_kill, Kind::file_power_loss);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Schedule schedule = job_of(3, {{.kind = kind, .at = 4s, .duration = 2s, .node = 1}});
    schedule.seed = seed;
    schedule.backend = Backend::file;
    INFO(to_text(schedule));
    const Outcome outcome = simulate(schedule);
    CHECK(outcome.violation.empty());
    CHECK(outcome.is_done);
  }
}

// It has been stopped while its workers went on, which end before it continues for most of the seeds.
TEST_CASE("simulation: in a file, nobody waits for a node that was dropped when its workers had succeeded",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Schedule schedule = job_of(3, {{.kind = Kind::pause, .at = 2s, .duration = 30s, .node = 0}});
    schedule.seed = seed;
    schedule.backend = Backend::file;
    schedule.work = 40s;
    INFO(to_text(schedule));
    const Outcome outcome = simulate(schedule);
    CHECK(outcome.violation.empty());
    CHECK(outcome.is_done);
  }
}

TEST_CASE("simulation: in a file, no round begins that has lost a node since it was complete",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Schedule schedule = job_of(3, {{.kind = Kind::file_lock, .at = 1s, .duration = 20s},
                                   {.kind = Kind::kill, .at = 3s, .duration = 200ms, .node = 1}});
    schedule.seed = seed;
    schedule.backend = Backend::file;
    schedule.min_nodes = 3;
    schedule.work = 10s;
    schedule.starts = {200ms, 2s, 100ms};
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

// The node that has succeeded cannot say so while the file is locked, and would say it in the other one.
TEST_CASE("simulation: in a file, success counts for nobody who meets in a file that replaced it",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Schedule schedule =
        job_of(3, {{.kind = Kind::file_lock, .at = 2324ms, .duration = 12248ms},
                   {.kind = Kind::file_removal, .at = 12835ms, .duration = 42087ms, .node = 2, .other = 3},
                   {.kind = Kind::power_loss, .at = 14157ms, .duration = 1366ms, .node = 2}});
    schedule.seed = seed;
    schedule.backend = Backend::file;
    schedule.machines = 2;
    schedule.max_restarts = 1;
    schedule.join_timeout = 117s;
    schedule.read_timeout = 25s;
    schedule.work = 19s;
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

TEST_CASE("simulation: a job that is restarted again and again needs no more memory", "[simulation]") {
  const Backend backend = GENERATE(Backend::c10d, Backend::static_, Backend::etcd);
  const auto run = [backend](int restarts) {
    std::vector<Fault> faults;
    for (int i = 0; i < restarts; ++i)
      faults.push_back({.kind = Kind::worker_fails, .at = 5s + i * 4s, .node = i % 3});
    Schedule schedule = job_of(3, std::move(faults));
    schedule.backend = backend;
    schedule.min_nodes = 3;
    schedule.max_restarts = restarts;
    return simulate(schedule);
  };
  // The addresses of the last 64 rounds are kept.
  const Outcome few = run(100);
  const Outcome many = run(1000);
  INFO(name_of(backend));
  CHECK(few.is_done);
  CHECK(many.is_done);
  CHECK(many.memory < few.memory + (16 << 10));
}

// At etcd, a node with a process that is new to the job waits beside it; at a c10d endpoint, the successor
// that it has asked is mute.
TEST_CASE("simulation: a node begins no other job while another may count it, or newcomers wait with it",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Schedule at_etcd = job_of(4, {{.kind = Kind::isolation, .at = 1648ms, .duration = 5572ms, .node = 2},
                                  {.kind = Kind::muteness, .at = 2732ms, .duration = 22951ms, .node = 3}});
    at_etcd.backend = Backend::etcd;
    at_etcd.node_timeout = 5948ms;
    at_etcd.starts = {4106ms, 1521ms, 240ms, 399ms};
    Schedule at_endpoint =
        job_of(3, {{.kind = Kind::cut_one_way, .at = 10s, .duration = 10s, .node = 0, .other = 1},
                   {.kind = Kind::kill, .at = 10200ms, .duration = 2s, .node = 0},
                   {.kind = Kind::muteness, .at = 10800ms, .duration = 23s, .node = 1}});
    at_endpoint.node_timeout = 7s;
    for (Schedule* schedule : {&at_etcd, &at_endpoint}) {
      schedule->seed = seed;
      INFO(to_text(*schedule));
      CHECK(simulate(*schedule).violation.empty());
    }
  }
}

TEST_CASE("simulation: a host that was stopped hears of those that gave it up, also after a partition",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Schedule schedule = job_of(4, {{.kind = Kind::pause, .at = 5s, .duration = 9800ms, .node = 2},
                                   {.kind = Kind::isolation, .at = 7s, .duration = 10900ms, .node = 1}});
    schedule.seed = seed;
    schedule.backend = Backend::etcd;
    schedule.machines = 2;
    schedule.min_nodes = 2;
    schedule.max_nodes = 3;
    schedule.node_timeout = 6579ms;
    schedule.starts = {4s, 381ms, 165ms, 458ms};
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

TEST_CASE("simulation: all nodes of a machine that has lost its power are found to have ended",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Schedule schedule = job_of(4, {{.kind = Kind::power_loss, .at = 5s, .duration = 5s, .node = 1}});
    schedule.seed = seed;
    schedule.machines = 2;
    schedule.starts = {0ms, 100ms, 30s, 200ms};
    INFO(to_text(schedule));
    const Outcome outcome = simulate(schedule);
    CHECK(outcome.violation.empty());
    CHECK(outcome.is_done);
  }
}

// Over a slow network, an attempt to connect that was given up arrives after the next one.
TEST_CASE("simulation: a node whose connections arrive in another order is not forgotten", "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Schedule schedule = job_of(4, {{.kind = Kind::slowness, .at = 15600ms, .duration = 6540ms, .node = 1},
                                   {.kind = Kind::terminate, .at = 16707ms, .node = 0}});
    schedule.seed = seed;
    schedule.max_restarts = 3;
    schedule.node_timeout = 7792ms;
    schedule.join_timeout = 42705ms;
    schedule.last_call = 3036ms;
    schedule.work = 25s;
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

TEST_CASE("simulation: a host that was stopped does not take those that gave it up for ended",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Schedule schedule = job_of(4, {{.kind = Kind::pause, .at = 7200ms, .duration = 9339ms, .node = 0},
                                   {.kind = Kind::split, .at = 8120ms, .duration = 9601ms, .other = 1}});
    schedule.seed = seed;
    schedule.node_timeout = 2409ms;
    schedule.work = 20s;
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

// It waits for a round with nodes that have come since, when it loses the leader of both.
TEST_CASE("simulation: a node that may not have heard of a round's begin does not go on alone",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Schedule schedule =
        job_of(4, {{.kind = Kind::kill, .at = 5s, .duration = 1s, .node = 0},
                   {.kind = Kind::cut, .at = 12180ms, .duration = 6s, .node = 0, .other = 1},
                   {.kind = Kind::kill, .at = 13680ms, .node = 1},
                   {.kind = Kind::cut, .at = 13680ms, .duration = 40s, .node = 0, .other = 2},
                   {.kind = Kind::cut, .at = 13680ms, .duration = 40s, .node = 0, .other = 3}});
    schedule.seed = seed;
    schedule.join_timeout = 100s;
    schedule.work = 100s;
    schedule.starts = {0ms, 100ms, 12s, 12s};
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

TEST_CASE("simulation: a node that has connected anew has entered its round", "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Schedule schedule = job_of(8, {{.kind = Kind::power_loss, .at = 5s, .node = 4},
                                   {.kind = Kind::power_loss, .at = 5s, .node = 5},
                                   {.kind = Kind::power_loss, .at = 15s, .node = 2},
                                   {.kind = Kind::isolation, .at = 15s, .duration = 4s, .node = 3},
                                   {.kind = Kind::power_loss, .at = 20500ms, .node = 3}});
    schedule.seed = seed;
    schedule.min_nodes = 4;
    schedule.starts = {0ms, 100ms, 200ms, 300ms, 400ms, 500ms, 35s, 35s};
    INFO(to_text(schedule));
    const Outcome outcome = simulate(schedule);
    CHECK(outcome.violation.empty());
    CHECK(outcome.is_done);
  }
}

TEST_CASE("simulation: a host notices itself that silent nodes have ended", "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Schedule schedule = job_of(3, {{.kind = Kind::power_loss, .at = 6137ms, .duration = 1759ms, .node = 0},
                                   {.kind = Kind::kill, .at = 6162ms, .duration = 1575ms, .node = 1},
                                   {.kind = Kind::split, .at = 9117ms, .duration = 1424ms, .other = 1}});
    schedule.seed = seed;
    schedule.backend = Backend::etcd;
    schedule.max_nodes = 2;
    schedule.has_secret = true;
    schedule.node_timeout = 3120ms;
    schedule.last_call = 5804ms;
    schedule.work = 80s;
    schedule.starts = {337ms, 112ms, 23ms};
    INFO(to_text(schedule));
    const Outcome outcome = simulate(schedule);
    CHECK(outcome.violation.empty());
    CHECK(outcome.is_done);
  }
}

TEST_CASE("simulation: a leader and the one that it has replaced at the endpoint do not wait for each other",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Schedule schedule = job_of(3, {{.kind = Kind::blinking, .at = 10848ms, .duration = 7426ms, .node = 2},
                                   {.kind = Kind::muteness, .at = 12635ms, .duration = 6208ms, .node = 0}});
    schedule.seed = seed;
    schedule.min_nodes = 2;
    schedule.has_secret = true;
    schedule.node_timeout = 2274ms;
    schedule.last_call = 7028ms;
    schedule.join_timeout = 200s;
    schedule.work = 20s;
    schedule.starts = {476ms, 474ms, 25ms};
    INFO(to_text(schedule));
    const Outcome outcome = simulate(schedule);
    CHECK(outcome.violation.empty());
    CHECK(outcome.is_done);
  }
}

// The host at the endpoint yields a second time. A node that comes then asks there.
TEST_CASE("simulation: the store at the endpoint stays however often its host yields", "[simulation]") {
  Schedule schedule = job_of(4, {{.kind = Kind::kill, .at = 5s, .duration = 1s, .node = 0},
                                 {.kind = Kind::kill, .at = 12s, .duration = 3s, .node = 1},
                                 {.kind = Kind::kill, .at = 12s, .duration = 4s, .node = 2},
                                 {.kind = Kind::isolation, .at = 22s, .duration = 8s, .node = 0}});
  schedule.starts = {0ms, 100ms, 200ms, 60s};
  schedule.work = 100s;
  INFO(to_text(schedule));
  const Outcome outcome = simulate(schedule, /*with_trace=*/true);
  INFO(outcome.trace);
  CHECK(outcome.violation.empty());
  CHECK(outcome.trace.find("n3 acc: debug: rendezvous: n0:29400: Connection refused") == std::string::npos);
}

// The network is slow: what the process before sent arrives after the new one.
TEST_CASE("simulation: a static node that is started again has its rank, whatever is on its way still",
          "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Schedule schedule = job_of(2, {{.kind = Kind::slowness, .at = 1020ms, .duration = 8743ms, .node = 1},
                                   {.kind = Kind::worker_fails, .at = 8201ms, .node = 0},
                                   {.kind = Kind::kill, .at = 9394ms, .duration = 434ms, .node = 1}});
    schedule.seed = seed;
    schedule.backend = Backend::static_;
    schedule.min_nodes = 2;
    schedule.max_restarts = 4;
    schedule.node_timeout = 4962ms;
    INFO(to_text(schedule));
    CHECK(simulate(schedule).violation.empty());
  }
}

TEST_CASE("simulation: more of them", "[.long]") {
  check_seeds(number_of("ACC_SEED", 1), number_of("ACC_SEEDS", 100000), chosen_backend());
}

TEST_CASE("simulation: one of them again", "[.again]") {
  const Schedule schedule = draw_schedule(number_of("ACC_SEED", 1), chosen_backend());
  const Outcome outcome = simulate(schedule, true);
  std::cout << to_text(schedule) << outcome.trace;
  CHECK(outcome.violation.empty());
}
