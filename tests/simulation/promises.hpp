// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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
  small_queues,
  bounded_memory
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
/// - What is queued stays small, and nobody asks without a pause. Nor does a process hold more memory,
///   however many rounds it has seen.
///
/// Nodes that meet in a file are each as an agent of torchrun, and hear of each other only what is in the
/// file:
///
/// - A node that is lost is noticed after torchrun's 15 s, everything else when the file is looked at the
/// next
///   time. Nobody notices anything while the file is locked, and gives up if it is for the read timeout.
/// - A node that is left behind notices that when it looks at the file, too.
/// - Each counts its own restarts, and a job begun anew counts from zero.
/// - A node whose workers have succeeded waits 300 s for those of the others, or as long as it can use the
///   file, and then succeeds by itself. Nodes that were lost meanwhile, or have failed, do not meet without
///   it, and end with 75: such a job need not succeed.
/// - Others hear that a node has ended the job, but not with which code.
class Promises {
 public:
  explicit Promises(const Schedule& schedule) : schedule_(schedule) {}

  // What processes do. `process` is a number for each.
  /// `number`: of two rounds with the same nodes and addresses the later has a larger one.
  void on_workers_start(int process, int workers, const acc::launcher::RoundReady& ready,
                        std::int64_t number);
  void on_workers_stop(int process);
  void on_success(int process);
  void on_failure(int process);
  void on_job_done(int process);
  /// It has not heard of the success of all, and does not wait for it any more.
  void on_success_alone(int process);
  void on_pause(int process, bool pauses);
  void on_end(int process, int code);

  /// What holds at any time; called after each event. `is_whole`: all machines reach each other.
  void check(bool is_whole);
  /// For how long nobody could use the file until now.
  void check_file(Duration blocked);
  void check_queues(std::size_t tasks, std::size_t unread);
  void check_requests(std::size_t to_etcd);
  /// How often a process opens the file within a second.
  void check_opens(std::size_t opens);
  /// `bytes`: of a process.
  void check_memory(std::int64_t bytes);
  void violate(Promise promise, const std::string& text);

  /// How long the loss of a node goes unnoticed: the node timeout, and the interval in which it is looked at.
  Duration notice_time() const;
  /// The first promise that was not kept, and how.
  Promise broken() const { return broken_; }
  const std::string& violation() const { return violation_; }
  bool is_done() const { return is_done_; }
  /// Of the round that began last; 0: none has.
  int nodes_of_last_round() const { return groups_.empty() ? 0 : std::get<2>(groups_.back().view); }
  /// Whether a node has waited in the last round for the success of others, and they did not get out of it.
  bool has_held_round() const { return has_held_round_; }
  /// When workers ran last.
  Time last_work() const { return last_work_; }
  /// When a process whose workers may have succeeded long before was last told that its round is over.
  Time last_round_end() const { return last_round_end_; }
  /// What a process has held at most, in bytes.
  std::int64_t most_memory() const { return most_memory_; }
  /// With which codes processes have ended by themselves.
  const std::set<int>& codes() const { return codes_; }

 private:
  /// What is the same for all nodes of a round. The store has another port in each round of a dynamic job,
  /// and a static one counts restarts. In a file, where the port stays, rounds have numbers.
  using View = std::tuple<std::string, int, int, int, std::int64_t>;
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

  bool is_in_file() const { return schedule_.backend == Backend::file; }
  std::size_t group_of(const acc::launcher::RoundReady& ready, std::int64_t number);
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
  bool has_held_round_ = false;
  Time last_work_ = {};
  Time last_round_end_ = {};
  Time whole_since_ = {};
  Time usable_since_ = {};
  Duration blocked_ = {};
  bool was_whole_ = false;
  std::int64_t most_memory_ = 0;
  std::set<int> codes_ = {};
};

}  // namespace simulation
