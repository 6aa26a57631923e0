// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "acc/rendezvous/callback_guard.hpp"
#include "acc/rendezvous/rendezvous_backend.hpp"
#include "acc/rendezvous/torch_agents.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// What both backends do in the store where torchrun's agents meet, whichever keys say who is there: exchange
/// ranks, wait for each other at the end, and notify of what happens.
struct StoreMeeting {
  using Events = RendezvousBackend::Events;

  /// `the_store` outlives it, and calls `on_lost` when it is lost.
  StoreMeeting(boost::asio::io_context& the_loop, Store& the_store, Events the_events,
               std::function<void()> on_lost);
  ~StoreMeeting() { store.on_closed({}); }
  StoreMeeting(const StoreMeeting&) = delete;
  StoreMeeting& operator=(const StoreMeeting&) = delete;

  /// Exchanges ranks with the others; `ranked` gets those of the own nodes, and an error fails the meeting.
  void exchange_ranks(RankExchange::Options options,
                      std::function<void(const std::map<int, AssignedRanks>&)> ranked);
  /// Notifies of who is missing, if that has changed.
  void missing(const std::string& text);
  /// Notifies of the error, once and last.
  void fail(const Error& error);
  /// Calls `done` when all nodes of the barrier have come to it; soon, if all of them are `alone` our own.
  void finish(std::function<void()> done, bool alone, const ExitBarrier::Options& options);
  void finished();

  boost::asio::io_context& loop;
  Store& store;
  Events events;
  boost::asio::steady_timer timer;
  /// The store may outlive this: what it calls back asks first.
  CallbackGuard guard = {};
  bool failed = false;
  bool closing = false;
  std::optional<RankExchange> exchange = {};
  std::optional<ExitBarrier> barrier = {};
  std::function<void()> finishing = {};
  std::string last_missing = {};
};

/// The round of the node with `group_rank` of `num_machines`; where the workers' store is comes later.
Round round_of(int group_rank, int num_machines, const AssignedRanks& ranks);

}  // namespace acc::launcher
