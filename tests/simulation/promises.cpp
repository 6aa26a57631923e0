// SPDX-License-Identifier: Apache-2.0
#include "simulation/promises.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace simulation {

using namespace std::chrono_literals;
using acc::launcher::RoundReady;

namespace {

// To stop workers, and for what is late.
constexpr Duration kStopTime = 1500ms;
// torchrun's, after which an agent is dead that has not written to the file.
constexpr Duration kKeepAliveTimeout = 15s;
// Until the file is looked at: every second, and once more where another has it locked for a moment.
constexpr Duration kFileTime = 2s;

bool ends_by_signal(const Fault& fault) {
  return fault.kind == Fault::Kind::terminate || fault.kind == Fault::Kind::stop_job;
}

}  // namespace

void Promises::violate(Promise promise, const std::string& text) {
  if (broken_ != Promise::none) return;
  broken_ = promise;
  violation_ = text;
  World::current().trace("NOT KEPT: " + text);
}

Duration Promises::notice_time() const {
  return is_in_file() ? kKeepAliveTimeout + kFileTime : schedule_.node_timeout * 5 / 4;
}

std::size_t Promises::group_of(const RoundReady& ready, std::int64_t round_number) {
  const auto& round = ready.round;
  const View view(round.master_addr, round.master_port, round.num_machines, round.world_size, round_number);
  for (std::size_t number = groups_.size(); number > 0; --number) {
    const Group& group = groups_[number - 1];
    if (group.view != view) continue;
    // Another job with the same address, of processes that were started again.
    const auto holder = group.process_of_machine_rank.find(round.machine_rank);
    if (holder != group.process_of_machine_rank.end() && workers_[holder->second].has_ended) break;
    return number - 1;
  }
  groups_.push_back({.view = view, .begin = World::current().now()});
  return groups_.size() - 1;
}

void Promises::inherit(std::size_t number, const Worker& worker) {
  if (!worker.was_in_group || worker.group == number) return;
  const Group& before = groups_[worker.group];
  Group& group = groups_[number];
  group.ancestors.insert(worker.group);
  group.ancestors.insert(before.ancestors.begin(), before.ancestors.end());
  // A host that is started anew believes no stranger how often an elastic job was restarted.
  const bool is_fixed = schedule_.min_nodes == schedule_.max_nodes && !is_in_file();
  if (is_fixed && std::get<4>(group.view) < std::get<4>(before.view))
    violate(Promise::one_view, fmt::format("a round counts {} restarts, and the one before {}",
                                           std::get<4>(group.view), std::get<4>(before.view)));
}

void Promises::on_workers_start(int process, int workers, const RoundReady& ready,
                                std::int64_t round_number) {
  const Uncharged promises;
  const std::size_t number = group_of(ready, round_number);
  Worker& worker = workers_[process];
  inherit(number, worker);
  worker = {.group = number,
            .was_in_group = true,
            .runs = true,
            .is_paused = worker.is_paused,
            .awake_since = World::current().now()};
  check_ranks(groups_[number], process, workers, ready);
}

void Promises::check_ranks(Group& group, int process, int workers, const RoundReady& ready) {
  const auto& round = ready.round;
  if (round.num_machines < schedule_.min_nodes || round.num_machines > schedule_.max_nodes)
    violate(Promise::one_view, fmt::format("a round of {} nodes", round.num_machines));
  if (ready.restarts > schedule_.max_restarts)
    violate(Promise::one_view, fmt::format("restart {} of {}", ready.restarts, schedule_.max_restarts));
  const auto [holder, is_free] = group.process_of_machine_rank.emplace(round.machine_rank, process);
  if (!is_free)
    violate(Promise::one_view, fmt::format("machine rank {} belongs to processes {} and {}",
                                           round.machine_rank, holder->second, process));
  for (int rank = round.first_rank; rank < round.first_rank + workers; ++rank) {
    if (rank < 0 || rank >= round.world_size)
      violate(Promise::one_view, fmt::format("rank {} of {}", rank, round.world_size));
    if (!group.ranks.insert(rank).second)
      violate(Promise::one_view, fmt::format("rank {} is there twice", rank));
  }
}

void Promises::on_workers_stop(int process) {
  workers_[process].runs = false;
  last_round_end_ = World::current().now();
}

void Promises::on_success(int process) {
  groups_[workers_[process].group].succeeded.insert(process);
}

void Promises::on_failure(int process) {
  Group& group = groups_[workers_[process].group];
  if (!std::exchange(group.has_failed, true)) group.failed_at = World::current().now();
  has_failed_ = true;
}

// A node that waits as a spare hears of the end, too.
void Promises::on_job_done(int process) {
  is_done_ = true;
  workers_[process].knows_of_success = true;
  const auto is_complete = [](const Group& group) {
    return !group.has_failed && static_cast<int>(group.succeeded.size()) == std::get<2>(group.view);
  };
  if (std::ranges::none_of(groups_, is_complete))
    violate(Promise::success_of_all,
            fmt::format("process {} is told that the job is done, and no group's workers have all succeeded",
                        process));
}

void Promises::on_success_alone(int process) {
  Worker& worker = workers_[process];
  worker.knows_of_success = true;
  has_held_round_ = has_held_round_ || worker.group + 1 == groups_.size();
}

void Promises::on_pause(int process, bool pauses) {
  Worker& worker = workers_[process];
  worker.is_paused = pauses;
  worker.awake_since = World::current().now();
}

void Promises::on_end(int process, int code) {
  Worker& worker = workers_[process];
  worker.runs = false;
  worker.has_ended = true;
  World::current().trace(fmt::format("process {} ends with {}", process, code));
  constexpr int kKilled = -1;
  if (code == kKilled) return;
  codes_.insert(code);
  const bool is_documented =
      (code == 0 && worker.knows_of_success) || (code == kWorkerCode && has_failed_) || code == kNotMetCode ||
      (code == kTerminatedCode && std::ranges::any_of(schedule_.faults, ends_by_signal));
  if (!is_documented)
    violate(Promise::documented_code, fmt::format("process {} ends with {}", process, code));
}

bool Promises::runs(std::size_t number) const {
  return std::ranges::any_of(workers_, [number](const auto& entry) {
    const Worker& worker = entry.second;
    return worker.runs && worker.group == number && !worker.is_paused;
  });
}

void Promises::check(bool is_whole) {
  const Time now = World::current().now();
  if (is_whole && !std::exchange(was_whole_, true)) whole_since_ = now;
  was_whole_ = is_whole;
  for (const auto& [process, worker] : workers_) {
    if (!worker.runs) continue;
    last_work_ = now;
    if (!worker.is_paused) check_group(process, worker);
  }
}

void Promises::check_file(Duration blocked) {
  blocked_ = blocked;
  if (blocked > 0s) usable_since_ = World::current().now();
}

void Promises::check_group(int process, const Worker& worker) {
  const Time now = World::current().now();
  const Group& group = groups_[worker.group];
  const Time able_since = std::max(worker.awake_since, usable_since_);
  // A message takes as long as its connection is not lost, and may have to pass the coordinator. In a file,
  // who has failed may be lost before it has written that.
  const Duration limit = is_in_file() ? notice_time() + kFileTime : 2 * notice_time();
  if (group.has_failed && now - std::max(group.failed_at, able_since) > limit + kStopTime)
    violate(Promise::failure_ends_round,
            fmt::format("workers of process {} go on although one of the round has failed", process));
  const Duration useless = std::min(blocked_, now - worker.awake_since);
  if (useless > schedule_.read_timeout + kFileTime + kStopTime)
    violate(Promise::bounded_waits,
            fmt::format("workers of process {} go on although the file is locked", process));
  for (std::size_t number = worker.group + 1; number < groups_.size(); ++number)
    check_overlap(process, worker, number);
}

// `number`: of a group that has begun a round since.
void Promises::check_overlap(int process, const Worker& worker, std::size_t number) {
  const Time now = World::current().now();
  const Group& group = groups_[worker.group];
  const Group& later = groups_[number];
  const Time since = std::max({later.begin, worker.awake_since, usable_since_});
  const Duration look_time = is_in_file() ? kFileTime : notice_time();
  if (later.ancestors.contains(worker.group)) {
    if (now - since > look_time + kStopTime)
      violate(Promise::one_job,
              fmt::format("two groups run: workers of process {} go on although its group has begun another "
                          "round",
                          process));
    return;
  }
  if (!runs(number)) return;
  const bool is_sibling = std::ranges::any_of(
      later.ancestors, [&](std::size_t ancestor) { return group.ancestors.contains(ancestor); });
  const bool is_noticed = is_sibling || is_in_file();
  const Duration limit = is_in_file() ? kFileTime + kStopTime
                         : is_sibling ? kStopTime
                                      : 2 * notice_time() + 20s;
  if (now - (is_noticed ? since : std::max(since, whole_since_)) <= limit) return;
  if (is_noticed || was_whole_)
    violate(Promise::one_job,
            fmt::format("two groups run: workers of process {} go on, and so does {}", process,
                        is_sibling ? "another part of the same round" : "another job"));
}

void Promises::check_queues(std::size_t tasks, std::size_t unread) {
  constexpr std::size_t kMaxTasks = 10000;
  constexpr std::size_t kMaxUnread = std::size_t{4} << 20U;
  if (tasks > kMaxTasks) violate(Promise::small_queues, fmt::format("{} handlers are queued", tasks));
  if (unread > kMaxUnread) violate(Promise::small_queues, fmt::format("{} bytes are not read", unread));
}

void Promises::check_memory(std::int64_t bytes) {
  // A process has two buffers of 64 KiB, and a smaller one for each connection.
  constexpr std::int64_t kMaxBytes = std::int64_t{512} << 10U;
  most_memory_ = std::max(most_memory_, bytes);
  if (bytes > kMaxBytes)
    violate(Promise::bounded_memory, fmt::format("a process holds {} bytes of memory", bytes));
}

void Promises::check_opens(std::size_t opens) {
  // Two stores, or three in a round's beginning, try again every 10 ms while the file is locked.
  constexpr std::size_t kMaxOpens = 400;
  if (opens > kMaxOpens)
    violate(Promise::small_queues, fmt::format("a process opens the file {} times within a second", opens));
}

void Promises::check_requests(std::size_t to_etcd) {
  constexpr std::size_t kMaxRequests = 8;
  if (to_etcd > kMaxRequests)
    violate(Promise::small_queues, fmt::format("{} requests to etcd are queued", to_etcd));
}

}  // namespace simulation
