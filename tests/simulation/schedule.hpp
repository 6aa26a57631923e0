// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulation/world.hpp"

namespace simulation {

/// The exit codes of nodes that do not meet, of workers that fail, and of what is stopped by SIGTERM.
inline constexpr int kNotMetCode = 75;
inline constexpr int kWorkerCode = 17;
inline constexpr int kTerminatedCode = 143;

/// How the nodes of a job find each other.
enum class Backend { c10d, static_, etcd, file };

/// Something that goes wrong, or that a user does.
struct Fault {
  enum class Kind {
    cut,          ///< nothing gets from machine `node` to `other`, nor back
    cut_one_way,  ///< nothing gets from `node` to `other`
    isolation,    ///< `node` is cut off from all others
    deafness,     ///< nothing gets to `node`; what it sends arrives
    muteness,     ///< nothing that `node` sends arrives
    split,        ///< the machines of the bits in `other` are cut off from the rest
    half_split,   ///< nothing gets from the machines of the bits in `other` to the rest
    blinking,     ///< as isolation, on and off
    loss,         ///< a part of what is sent is lost, everywhere
    slowness,     ///< everything that `node` sends and gets takes up to a second
    pause,        ///< the process of `node` is stopped by a signal
    kill,         ///< the process of `node` is killed, and started again after `duration`
    power_loss,   ///< the machine of `node` loses its power until then
    worker_fails,
    terminate,        ///< SIGTERM to the process of `node`
    stop_job,         ///< `acc stop` on `node`
    notice,           ///< a signal that announces the end
    clock_jump,       ///< the wall clock of `node` is set
    etcd_cut,         ///< nothing gets from the machine of `node` to etcd, nor back
    etcd_deafness,    ///< what the machine of `node` asks does not arrive
    etcd_muteness,    ///< etcd's answers to the machine of `node` do not arrive
    etcd_away,        ///< etcd is killed, and started again after `duration`
    etcd_pause,       ///< etcd's process is stopped
    etcd_slowness,    ///< etcd takes up to seconds for each request
    etcd_errors,      ///< etcd answers with errors
    etcd_lapse,       ///< etcd's clock is set ahead: all leases expire
    file_lock,        ///< somebody else has the file locked
    file_stop,        ///< the process of `node` is stopped when it has the file locked
    file_kill,        ///< as kill, in the middle of an append
    file_power_loss,  ///< as power_loss, in the middle of an append
    file_errors,      ///< what the machine of `node` does with the file fails: `other` says with which error
    file_outage,      ///< the same on all machines
    file_removal,     ///< the file is removed; or, if `other` is odd, replaced by an empty one
  };

  Kind kind = Kind::cut;
  Duration at = {};
  /// Zero, where something is not started again or has no end.
  Duration duration = {};
  int node = 0;
  int other = 0;

  bool operator==(const Fault&) const = default;
};

/// A job and what happens to it.
struct Schedule {
  int machine_of(int node) const { return node % machines; }
  int etcd_machine() const { return machines; }
  /// With that of etcd.
  int all_machines() const { return machines + (backend == Backend::etcd ? 1 : 0); }

  std::uint64_t seed = 0;
  Backend backend = Backend::c10d;
  int nodes = 2;
  /// Node 5 of four machines runs on machine 1, beside node 1.
  int machines = 2;
  int min_nodes = 2;
  int max_nodes = 2;
  bool has_secret = false;
  int max_restarts = 0;
  int spares = -1;
  Duration node_timeout = {};
  Duration join_timeout = {};
  Duration last_call = {};
  /// For how long the file may be locked, or a store not answer.
  Duration read_timeout = std::chrono::seconds(60);
  /// How long workers work in a round, at most.
  Duration work = {};
  /// When the processes start.
  std::vector<Duration> starts = {};
  std::vector<Fault> faults = {};
};

/// The schedule of a seed; `backend`: with this one, whichever is drawn.
Schedule draw_schedule(std::uint64_t seed, std::optional<Backend> backend = {});

const char* name_of(Backend backend);

/// For people, a line for each fault.
std::string to_text(const Schedule& schedule);
std::string to_text(const Fault& fault);

}  // namespace simulation
