// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "acc/base/event_loop.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/rendezvous/callback_guard.hpp"
#include "acc/rendezvous/rendezvous_backend.hpp"
#include "acc/rendezvous/torch_agents.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// What both backends do in the store where torchrun's agents meet: exchange ranks, wait for each other at
/// the end, and call the handlers of events.
struct StoreMeeting {
  using Events = RendezvousBackend::Events;

  /// `the_store` outlives it, and calls `on_lost` when it is lost.
  StoreMeeting(net::io_context& the_loop, Store& the_store, Events the_events, std::function<void()> on_lost);
  ~StoreMeeting() { store.on_closed({}); }
  StoreMeeting(const StoreMeeting&) = delete;
  StoreMeeting& operator=(const StoreMeeting&) = delete;

  /// Exchanges ranks with the others; `on_ranks` gets those of the own nodes, and an error fails the meeting.
  void exchange_ranks(RankExchange::Options options,
                      std::function<void(const std::map<int, AssignedRanks>&)> on_ranks);
  /// Calls `on_gathered` once for nodes that come and go one after the other, since what is then written
  /// holds all `nodes`: after a time in proportion to their number, so that the work does not grow with its
  /// square. `is_complete`: no more can come, and it is called at once, from the event loop.
  void gather(std::size_t nodes, bool is_complete, std::function<void()> on_gathered);
  /// Reports what is waited for, if that has changed.
  void missing(const std::string& text, bool spare = false);
  /// Asks the store nothing more, and handles no reply.
  void stop();
  /// Stops, and reports the error, unless it has stopped.
  void fail(const Error& error);
  /// Calls `on_done` when all nodes of the barrier have reached it; at once if `is_alone`: all of them are
  /// our own.
  void finish(std::function<void()> on_done, bool is_alone, const ExitBarrier::Options& options);
  void call_finished();

  net::io_context& loop;
  Store& store;
  Events events;
  RunningTimer timer;
  net::steady_timer gather_timer;
  bool gathering = false;
  /// Wraps the store's callbacks, since the store may outlive this.
  CallbackGuard guard = {};
  bool stopped = false;
  std::optional<RankExchange> exchange = {};
  std::optional<ExitBarrier> barrier = {};
  std::function<void()> on_finished = {};
  std::string last_missing = {};
};

/// The round of the node with `group_rank` of `num_machines`, without the address of the workers' store.
Round round_of(int group_rank, int num_machines, const AssignedRanks& ranks);

}  // namespace acc::launcher
