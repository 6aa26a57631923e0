// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "acc/rendezvous/rendezvous.hpp"
#include "simulation/schedule.hpp"
#include "simulation/world.hpp"

namespace simulation {

/// One of those below; `none`: all were kept.
enum class Promise {
  none,
  one_job,
  one_view,
  failure_ends_round,
  success_of_all,
  bounded_waits,
  unhindered_success,
  documented_code,
  small_queues
};

/// Checks what the rendezvous promises, whatever happens to nodes and network:
///
/// - One job: two groups of nodes that come from the same round never both have workers. When a group has
///   begun a round, nodes that it has left behind stop their workers within the time in which they notice
///   it: the node timeout, the interval in which they look at the clock, and what it takes to stop workers.
///   A process that is stopped by a signal cannot notice, and has this time from when it goes on. A job that
///   was begun anew, by a host that knows of no other, meets the one that runs once they can reach each
///   other.
/// - One view: all nodes of a group have the same number of nodes and workers and the same address of the
///   workers' store, and each rank belongs to one of them. Restarts are counted on, and never too many.
/// - A worker that fails ends the round of all. Success is everybody's: the job is done only when all workers
///   of all nodes of a group have succeeded.
/// - Nobody waits for ever: see Job, which knows what each process waits for. And a job that nothing hinders
///   succeeds.
/// - A process ends with the code that the guide documents for its end.
/// - What is queued stays small.
class Promises {
 public:
  explicit Promises(const Schedule& schedule) : schedule_(schedule) {}

  // What processes do. `process` is a number for each.
  void on_workers_start(int process, int workers, const acc::launcher::RoundReady& ready);
  void on_workers_stop(int process);
  void on_success(int process);
  void on_failure(int process);
  void on_job_done(int process);
  void on_pause(int process, bool pauses);
  void on_end(int process, int code);

  /// What holds at any time; called after each event. `is_whole`: all machines reach each other.
  void check(bool is_whole);
  void check_queues(std::size_t tasks, std::size_t unread);
  void check_requests(std::size_t to_etcd);
  void violate(Promise promise, const std::string& text);

  /// How long the loss of a node goes unnoticed: the node timeout, and the interval in which it is looked at.
  Duration notice_time() const { return schedule_.node_timeout * 5 / 4; }
  /// The first promise that was not kept, and how.
  Promise broken() const { return broken_; }
  const std::string& violation() const { return violation_; }
  bool is_done() const { return is_done_; }
  /// Of the round that began last; 0: none has.
  int nodes_of_last_round() const { return groups_.empty() ? 0 : std::get<2>(groups_.back().view); }
  /// When workers ran last.
  Time last_work() const { return last_work_; }
  /// When a process whose workers may have succeeded long before was last told that its round is over.
  Time last_round_end() const { return last_round_end_; }
  /// With which codes processes have ended by themselves.
  const std::set<int>& codes() const { return codes_; }

 private:
  /// What is the same for all nodes of a round. The store has another port in each round of a dynamic job,
  /// and a static one counts restarts.
  using View = std::tuple<std::string, int, int, int, int>;
  struct Group {
    View view = {};
    Time begin = {};
    std::map<int, int> process_of_machine_rank = {};
    std::set<int> ranks = {};
    std::set<int> succeeded = {};
    /// Groups in which its nodes were before, and those before them.
    std::set<std::size_t> ancestors = {};
    bool has_failed = false;
    Time failed_at = {};
  };
  struct Worker {
    std::size_t group = 0;
    bool was_in_group = false;
    bool runs = false;
    bool is_paused = false;
    bool has_ended = false;
    bool knows_of_success = false;
    /// When it was able to notice anything at the latest.
    Time awake_since = {};
  };

  std::size_t group_of(const acc::launcher::RoundReady& ready);
  void inherit(std::size_t number, const Worker& worker);
  void check_ranks(Group& group, int process, int workers, const acc::launcher::RoundReady& ready);
  void check_group(int process, const Worker& worker);
  void check_overlap(int process, const Worker& worker, std::size_t number);
  bool runs(std::size_t number) const;

  const Schedule& schedule_;
  std::vector<Group> groups_ = {};
  std::map<int, Worker> workers_ = {};
  Promise broken_ = Promise::none;
  std::string violation_ = {};
  bool is_done_ = false;
  bool has_failed_ = false;
  Time last_work_ = {};
  Time last_round_end_ = {};
  Time whole_since_ = {};
  bool was_whole_ = false;
  std::set<int> codes_ = {};
};

}  // namespace simulation
