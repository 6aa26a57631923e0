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

/// Checks what the rendezvous promises, whatever happens to nodes and network:
///
/// - One job: when a group of nodes has begun a round, no process goes on with workers of another group for
/// longer than
///   the time in which it notices that it was left behind: the node timeout, and what it takes to look at the
///   clock and to stop workers. A process that is stopped by a signal cannot notice, and has this time from
///   when it goes on.
/// - One view: all nodes of a group have the same number of nodes and workers and the same address of the
/// workers' store,
///   and each rank belongs to one of them.
/// - Success is everybody's: the job is done only when all workers of all nodes of a group have succeeded.
/// - Nobody waits for ever: see Job, which knows when faults end. And a job that nothing hinders succeeds.
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

  /// What holds at any time; called after each event.
  void check();
  void check_queues(std::size_t tasks, std::size_t unread);
  void violate(const std::string& text);

  const std::string& violation() const { return violation_; }
  bool is_done() const { return is_done_; }

 private:
  /// What is the same for all nodes of a round. The store has another port in each round of a dynamic job,
  /// and a static one counts restarts.
  using View = std::tuple<std::string, int, int, int, int>;
  struct Group {
    View view = {};
    std::map<int, int> process_of_machine_rank = {};
    std::set<int> ranks = {};
    std::set<int> succeeded = {};
    bool has_failed = false;
  };
  struct Worker {
    std::size_t group = 0;
    bool runs = false;
    bool is_paused = false;
    bool has_ended = false;
    /// Another group has begun since.
    bool is_outdated = false;
    Time outdated_since = {};
  };

  std::size_t group_of(const acc::launcher::RoundReady& ready);
  Duration longest_overlap() const;

  const Schedule& schedule_;
  std::vector<Group> groups_ = {};
  std::map<int, Worker> workers_ = {};
  std::string violation_ = {};
  bool is_done_ = false;
};

}  // namespace simulation
