// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/cluster_node.hpp"
#include "simulation/etcd.hpp"
#include "simulation/network.hpp"
#include "simulation/promises.hpp"
#include "simulation/schedule.hpp"
#include "simulation/shared_disk.hpp"
#include "simulation/world.hpp"

namespace simulation {

/// What a simulated job came to.
struct Outcome {
  /// The promise that was not kept, and how; none and empty: all were.
  Promise broken = Promise::none;
  std::string violation = {};
  /// Whether all workers of all nodes have succeeded.
  bool is_done = false;
  std::uint64_t hash = 0;
  /// What one of its processes has held at most, in bytes.
  std::int64_t memory = 0;
  /// Only if it was asked for.
  std::string trace = {};
};

/// Runs the job of `schedule` to its end, or to the first promise that is not kept.
Outcome simulate(const Schedule& schedule, bool with_trace = false);

/// The schedule without the faults without which the same promise is not kept.
Schedule shortened(Schedule schedule);

class Job;

/// A process of acc on a node: the rendezvous that ships, and a model of the agent, which starts workers when
/// a round is ready, stops them when it is over, and joins again or leaves.
class Process {
 public:
  Process(Job& job, int node, int process_id);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void start();
  void pause(bool pauses);
  void fail_worker();
  void terminate();
  void stop_job();
  void announce_end();
  /// Its process ends without its doing.
  void die();

  /// What it has waited for longer than the guide says; empty: for nothing. `last_work`: when workers ran
  /// last, on any node.
  std::string overdue(Time last_work) const;

  int node() const { return node_; }
  bool is_alive() const { return is_alive_; }
  acc::net::io_context& loop() { return loop_; }
  std::size_t requests_to_etcd() { return loop_.variable<EtcdRequests>().pending; }
  DiskUse& disk_use() { return loop_.variable<DiskUse>(); }

 private:
  enum class Phase { meeting, working, waiting, stopping, leaving };

  template <class Function>
  void later(Duration delay, Function function);
  void join();
  void on_event(const acc::launcher::NodeEvent& event);
  void on_ready(const acc::launcher::RoundReady& ready);
  void on_round_over(const acc::launcher::RoundOver& verdict);
  void on_workers_end();
  void on_job_done();
  void stop_workers();
  void go_on();
  void leave();
  void end();
  void enter(Phase phase);
  void trace(const std::string& text);

  Job& job_;
  const int node_;
  const int process_id_;
  acc::launcher::LaunchPlan plan_;
  acc::net::io_context loop_;
  std::unique_ptr<acc::launcher::ClusterNode> rendezvous_ = {};
  Phase phase_ = Phase::meeting;
  /// When it began to wait for what this phase waits for, or was able to go on with it.
  Time phase_begin_ = {};
  /// When the workers of the last round succeeded.
  std::optional<Time> succeeded_at_ = {};
  std::optional<acc::launcher::RoundReady> ready_ = {};
  std::optional<acc::launcher::RoundOver> verdict_ = {};
  bool job_done_ = false;
  bool is_terminated_ = false;
  /// Counts attempts, so that what concerns an earlier one is ignored.
  int attempt_ = 0;
  int code_ = 0;
  bool is_alive_ = true;
  std::shared_ptr<bool> exists_ = std::make_shared<bool>(true);
};

class Job {
 public:
  Job(const Schedule& schedule, bool with_trace);

  Outcome run();

  const Schedule& schedule() const { return schedule_; }
  Promises& promises() { return promises_; }
  Network& network() { return network_; }
  World& world() { return world_; }
  void on_ended(int node);
  /// Absent: the nodes do not meet in a file.
  SharedDisk* disk() { return disk_.get(); }

 private:
  void set_latencies();
  void start(int node);
  void apply(const Fault& fault);
  bool apply_to_etcd(const Fault& fault);
  bool apply_to_file(const Fault& fault);
  void set_disk_error(const Fault& fault);
  void hinder_etcd(void (Etcd::*hinder)(bool), Duration duration);
  void cut(const Fault& fault);
  void cut_pair(int from, int to, bool both_ways, Duration duration);
  void kill(const Fault& fault);
  void blink(const Fault& fault, Duration remaining);
  void slow_down(const Fault& fault);
  Process* alive(int node) const;
  void stop(Process& process, Duration duration);
  void check_disk();
  void check_processes();
  void check_end();
  bool is_whole() const;
  bool is_over() const;
  bool must_succeed() const;
  bool has_all_nodes_from_the_beginning() const;
  Time last_end() const;
  Duration locked_time() const;

  Schedule schedule_;
  World world_;
  Network network_;
  Promises promises_;
  /// Only if the nodes meet there.
  std::unique_ptr<Etcd> etcd_ = {};
  std::unique_ptr<SharedDisk> disk_ = {};
  std::map<int, std::unique_ptr<Process>> processes_ = {};
  int next_process_ = 100;
  int coming_ = 0;
};

}  // namespace simulation
