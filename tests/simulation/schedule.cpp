// SPDX-License-Identifier: Apache-2.0
#include "simulation/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace simulation {
namespace {

using namespace std::chrono_literals;
using Kind = Fault::Kind;

constexpr std::array kNames = {
    "cut",         "cut one way",   "isolation",     "deafness",  "muteness",   "split",
    "half split",  "blinking",      "loss",          "slowness",  "pause",      "kill",
    "power loss",  "worker fails",  "terminate",     "stop job",  "notice",     "clock jump",
    "etcd cut",    "etcd deafness", "etcd muteness", "etcd away", "etcd pause", "etcd slowness",
    "etcd errors", "etcd lapse",    "file lock",     "file stop", "file kill",  "file power loss",
    "file errors", "file outage",   "file removal"};
constexpr Duration kLastFault = 25s;

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// What ends a job is rare, so that most jobs live to see other faults.
Kind draw_kind(Random& random) {
  if (random.chance(3)) return Kind::terminate;
  if (random.chance(2)) return Kind::stop_job;
  if (random.chance(12)) return Kind::worker_fails;
  constexpr std::array kOthers = {
      Kind::cut,   Kind::cut_one_way, Kind::isolation,  Kind::deafness, Kind::muteness,  Kind::split,
      Kind::split, Kind::half_split,  Kind::blinking,   Kind::loss,     Kind::slowness,  Kind::pause,
      Kind::kill,  Kind::kill,        Kind::power_loss, Kind::notice,   Kind::clock_jump};
  return kOthers.at(static_cast<std::size_t>(random.between(std::int64_t{0}, kOthers.size() - 1)));
}

// Short ones, which TCP repairs; those in which some notice and others do not; and those in which both parts
// of a job have all the time to go on, if they would.
Duration draw_duration(Random& random, const Schedule& schedule) {
  if (random.chance(40)) return random.between(50ms, 3s);
  if (random.chance(60)) return random.between(50ms, 2 * schedule.node_timeout);
  return random.between(2 * schedule.node_timeout, 6 * schedule.node_timeout + 10s);
}

Fault draw_fault(Random& random, const Schedule& schedule) {
  const int last = schedule.nodes - 1;
  const auto node = static_cast<int>(random.between(std::int64_t{0}, last));
  Fault fault = {.kind = draw_kind(random), .at = random.between(0s, kLastFault), .node = node};
  fault.other = static_cast<int>((node + random.between(std::int64_t{1}, last)) % schedule.nodes);
  if (fault.kind == Kind::split || fault.kind == Kind::half_split)
    fault.other = static_cast<int>(random.between(std::int64_t{1}, (1 << schedule.nodes) - 2));
  fault.duration = draw_duration(random, schedule);
  const bool ends_something = fault.kind == Kind::kill || fault.kind == Kind::power_loss;
  if (ends_something && random.chance(20)) fault.duration = {};
  return fault;
}

Fault draw_fault_of_etcd(Random& random, const Schedule& schedule) {
  constexpr std::array kKinds = {Kind::etcd_cut,    Kind::etcd_deafness, Kind::etcd_muteness,
                                 Kind::etcd_away,   Kind::etcd_pause,    Kind::etcd_slowness,
                                 Kind::etcd_errors, Kind::etcd_lapse};
  return {.kind = kKinds.at(static_cast<std::size_t>(random.between(std::int64_t{0}, kKinds.size() - 1))),
          .at = random.between(0s, kLastFault),
          .duration = draw_duration(random, schedule),
          .node = static_cast<int>(random.between(std::int64_t{0}, schedule.nodes - 1))};
}

bool is_of_network(const Fault& fault) {
  return fault.kind <= Kind::slowness;
}

Fault draw_fault_of_file(Random& random, const Schedule& schedule) {
  constexpr std::array kKinds = {Kind::file_lock, Kind::file_lock, Kind::file_lock,
                                 Kind::file_stop, Kind::file_stop, Kind::file_stop,
                                 Kind::file_kill, Kind::file_kill, Kind::file_power_loss};
  Fault fault = draw_fault(random, schedule);
  fault.kind = kKinds.at(static_cast<std::size_t>(random.between(std::int64_t{0}, kKinds.size() - 1)));
  // They end a node, or all of them.
  if (random.chance(10)) fault.kind = Kind::file_errors;
  if (random.chance(3)) fault.kind = Kind::file_outage;
  if (random.chance(5)) fault.kind = Kind::file_removal;
  fault.other = static_cast<int>(random.between(std::int64_t{0}, 3));
  return fault;
}

// Nodes that meet in a file do not speak with each other.
void draw_for_file(Random& random, Schedule& schedule) {
  schedule.join_timeout = random.between(60s, 120s);
  schedule.read_timeout = random.between(20s, 40s);
  std::erase_if(schedule.faults, is_of_network);
  const auto faults = random.between(std::int64_t{0}, 3);
  for (int i = 0; i < faults; ++i) schedule.faults.push_back(draw_fault_of_file(random, schedule));
}

Backend draw_backend(Random& random) {
  return random.chance(20) ? Backend::etcd : Backend::c10d;
}

}  // namespace

Schedule draw_schedule(std::uint64_t seed, std::optional<Backend> backend) {
  // Another sequence than the world's.
  Random random(seed ^ 0x5ced01e5U);
  Schedule schedule = {.seed = seed};
  // Others for what is not c10d's, so that its schedules remain as more are added.
  Random backend_random(seed ^ 0xe7cd0000U);
  schedule.backend = draw_backend(backend_random);
  if (random.chance(25)) schedule.backend = Backend::static_;
  Random file_random(seed ^ 0xf11e0000U);
  if (file_random.chance(4)) schedule.backend = Backend::file;
  schedule.backend = backend.value_or(schedule.backend);
  schedule.nodes = static_cast<int>(random.between(std::int64_t{2}, random.chance(70) ? 4 : 7));
  schedule.machines = schedule.nodes;
  if (random.chance(15))
    schedule.machines = static_cast<int>(random.between(std::int64_t{2}, std::max(2, schedule.nodes - 1)));
  schedule.min_nodes = schedule.max_nodes = schedule.nodes;
  if (schedule.backend != Backend::static_) {
    if (random.chance(20) && schedule.nodes > 2) schedule.min_nodes = --schedule.max_nodes;
    if (random.chance(60))
      schedule.min_nodes = static_cast<int>(random.between(std::int64_t{1}, schedule.max_nodes));
    if (random.chance(20)) schedule.spares = static_cast<int>(random.between(std::int64_t{0}, 2));
  }
  schedule.has_secret = random.chance(30);
  schedule.max_restarts = static_cast<int>(random.between(std::int64_t{0}, 4));
  schedule.node_timeout = random.between(2s, 8s);
  schedule.join_timeout = random.between(30s, 60s);
  schedule.last_call = random.between(100ms, 4s);
  schedule.work = random.between(1s, 30s);
  for (int node = 0; node < schedule.nodes; ++node)
    schedule.starts.push_back(random.between(0ms, random.chance(80) ? 500ms : 10s));
  const auto faults = random.chance(5) ? 0 : random.between(std::int64_t{1}, 5);
  for (int i = 0; i < faults; ++i) schedule.faults.push_back(draw_fault(random, schedule));
  if (schedule.backend == Backend::etcd) {
    const auto faults_of_etcd = backend_random.between(std::int64_t{0}, 2);
    for (int i = 0; i < faults_of_etcd; ++i)
      schedule.faults.push_back(draw_fault_of_etcd(backend_random, schedule));
  }
  if (schedule.backend == Backend::file) draw_for_file(file_random, schedule);
  std::ranges::sort(schedule.faults, {}, &Fault::at);
  return schedule;
}

const char* name_of(Backend backend) {
  constexpr std::array kBackends = {"c10d", "static", "etcd", "file"};
  return kBackends.at(static_cast<std::size_t>(backend));
}

std::string to_text(const Fault& fault) {
  const char* name = kNames.at(static_cast<std::size_t>(fault.kind));
  return fmt::format("{:.3f} s: {}, node {}, other {}, {:.3f} s", seconds(fault.at), name, fault.node,
                     fault.other, seconds(fault.duration));
}

std::string to_text(const Schedule& schedule) {
  std::string text = fmt::format(
      "seed {}: {}, {} nodes on {} machines, of {} to {}, spares {}, {} secret, {} restarts, node timeout "
      "{:.3f} s, "
      "join timeout {:.3f} s, last call {:.3f} s, read timeout {:.3f} s, work {:.3f} s, starts at",
      schedule.seed, name_of(schedule.backend), schedule.nodes, schedule.machines, schedule.min_nodes,
      schedule.max_nodes, schedule.spares, schedule.has_secret ? "a" : "no", schedule.max_restarts,
      seconds(schedule.node_timeout), seconds(schedule.join_timeout), seconds(schedule.last_call),
      seconds(schedule.read_timeout), seconds(schedule.work));
  for (const Duration start : schedule.starts) text += fmt::format(" {:.3f}", seconds(start));
  for (const Fault& fault : schedule.faults) text += "\n  " + to_text(fault);
  return text + "\n";
}

}  // namespace simulation
