// SPDX-License-Identifier: Apache-2.0
#include "simulation/promises.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace simulation {

using namespace std::chrono_literals;
using acc::launcher::RoundReady;

namespace {

// Killed, done, a worker's, the rendezvous's, and SIGTERM's.
constexpr std::array kCodes = {-1, 0, 17, 75, 143};
// A static node that is started again before the host knows that its machine had no power is told that its
// rank is taken.
constexpr int kRankTaken = 2;

}  // namespace

void Promises::violate(const std::string& text) {
  if (!violation_.empty()) return;
  violation_ = text;
  World::current().trace("NOT KEPT: " + text);
}

std::size_t Promises::group_of(const RoundReady& ready) {
  const auto& round = ready.round;
  const View view(round.master_addr, round.master_port, round.num_machines, round.world_size, ready.restarts);
  for (std::size_t number = groups_.size(); number > 0; --number) {
    const Group& group = groups_[number - 1];
    if (group.view != view) continue;
    // Another job with the same address, of processes that were started again.
    const auto holder = group.process_of_machine_rank.find(round.machine_rank);
    if (holder != group.process_of_machine_rank.end() && workers_[holder->second].has_ended) break;
    return number - 1;
  }
  groups_.push_back({.view = view});
  for (auto& [process, worker] : workers_) {
    if (!worker.runs || worker.is_outdated) continue;
    worker.is_outdated = true;
    worker.outdated_since = World::current().now();
  }
  return groups_.size() - 1;
}

void Promises::on_workers_start(int process, int workers, const RoundReady& ready) {
  const auto& round = ready.round;
  const std::size_t number = group_of(ready);
  workers_[process] = {.group = number, .runs = true, .is_paused = workers_[process].is_paused};
  Group& group = groups_[number];
  if (number + 1 != groups_.size()) {
    workers_[process].is_outdated = true;
    workers_[process].outdated_since = World::current().now();
  }
  if (round.num_machines < schedule_.min_nodes || round.num_machines > schedule_.max_nodes)
    violate(fmt::format("a round of {} nodes", round.num_machines));
  const auto [holder, is_free] = group.process_of_machine_rank.emplace(round.machine_rank, process);
  if (!is_free)
    violate(fmt::format("machine rank {} belongs to processes {} and {}", round.machine_rank, holder->second,
                        process));
  for (int rank = round.first_rank; rank < round.first_rank + workers; ++rank) {
    if (rank < 0 || rank >= round.world_size) violate(fmt::format("rank {} of {}", rank, round.world_size));
    if (!group.ranks.insert(rank).second) violate(fmt::format("rank {} is there twice", rank));
  }
}

void Promises::on_workers_stop(int process) {
  workers_[process].runs = false;
}

void Promises::on_success(int process) {
  groups_[workers_[process].group].succeeded.insert(process);
}

void Promises::on_failure(int process) {
  groups_[workers_[process].group].has_failed = true;
}

// A node that waits as a spare hears of the end, too.
void Promises::on_job_done(int process) {
  is_done_ = true;
  const auto is_complete = [](const Group& group) {
    return !group.has_failed && static_cast<int>(group.succeeded.size()) == std::get<2>(group.view);
  };
  if (std::ranges::none_of(groups_, is_complete))
    violate(fmt::format("process {} is told that the job is done, and no group's workers have all succeeded",
                        process));
}

void Promises::on_pause(int process, bool pauses) {
  Worker& worker = workers_[process];
  worker.is_paused = pauses;
  worker.outdated_since = World::current().now();
}

void Promises::on_end(int process, int code) {
  workers_[process].runs = false;
  workers_[process].has_ended = true;
  World::current().trace(fmt::format("process {} ends with {}", process, code));
  const bool may_be_taken = schedule_.backend == acc::launcher::RendezvousKind::static_;
  if (!std::ranges::count(kCodes, code) && !(may_be_taken && code == kRankTaken))
    violate(fmt::format("process {} ends with {}", process, code));
}

Duration Promises::longest_overlap() const {
  return schedule_.node_timeout + 3s;
}

void Promises::check() {
  const Time now = World::current().now();
  for (const auto& [process, worker] : workers_) {
    if (!worker.runs || worker.is_paused || !worker.is_outdated) continue;
    if (now - worker.outdated_since <= longest_overlap()) continue;
    violate(fmt::format(
        "two groups run: workers of process {} go on although another group has begun a round", process));
  }
}

void Promises::check_queues(std::size_t tasks, std::size_t unread) {
  constexpr std::size_t kMaxTasks = 10000;
  constexpr std::size_t kMaxUnread = std::size_t{4} << 20U;
  if (tasks > kMaxTasks) violate(fmt::format("{} handlers are queued", tasks));
  if (unread > kMaxUnread) violate(fmt::format("{} bytes are not read", unread));
}

}  // namespace simulation
