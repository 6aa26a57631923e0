// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/store_meeting.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "acc/base/event_loop.hpp"

namespace acc::launcher {
namespace {

// Some hundred times what it takes to write one node, so that a busy job spends little of its time on this.
constexpr std::chrono::microseconds kGatherTime{100};
constexpr std::chrono::microseconds kMaxGatherTime = std::chrono::seconds(1);

}  // namespace

StoreMeeting::StoreMeeting(net::io_context& the_loop, Store& the_store, Events the_events,
                           std::function<void()> on_lost)
    : loop(the_loop),
      store(the_store),
      events(std::move(the_events)),
      timer(the_loop),
      gather_timer(the_loop) {
  store.on_closed(std::move(on_lost));
}

void StoreMeeting::exchange_ranks(RankExchange::Options options,
                                  std::function<void(const std::map<int, AssignedRanks>&)> on_ranks) {
  exchange.emplace(store, std::move(options),
                   [this, on_ranks = std::move(on_ranks)](const auto& error, const auto& ranks) {
                     error ? fail(*error) : on_ranks(ranks);
                   });
}

void StoreMeeting::gather(std::size_t nodes, bool is_complete, std::function<void()> on_gathered) {
  const auto time = is_complete ? std::chrono::microseconds(0)
                                : std::min(kGatherTime * static_cast<std::int64_t>(nodes), kMaxGatherTime);
  const auto due = net::steady_clock::now() + time;
  if (gathering && gather_timer.expiry() <= due) return;
  gathering = true;
  gather_timer.expires_at(due);
  gather_timer.async_wait(guard([this, on_gathered = std::move(on_gathered)](const auto& error) {
    if (error) return;
    gathering = false;
    on_gathered();
  }));
}

void StoreMeeting::missing(const std::string& text, bool spare) {
  if (text == last_missing) return;
  last_missing = text;
  notify(events.on_missing, text, spare);
}

void StoreMeeting::stop() {
  if (std::exchange(stopped, true)) return;
  guard.reset();
  timer.cancel();
  exchange.reset();
}

void StoreMeeting::fail(const Error& error) {
  if (stopped) return;
  stop();
  notify(events.on_error, error);
}

void StoreMeeting::finish(std::function<void()> on_done, bool is_alone, const ExitBarrier::Options& options) {
  on_finished = std::move(on_done);
  if (is_alone || stopped) return net::post(loop, guard([this] { call_finished(); }));
  barrier.emplace(store, options, [this](bool) { call_finished(); });
}

void StoreMeeting::call_finished() {
  barrier.reset();
  const auto handler = std::exchange(on_finished, {});
  if (handler) handler();
}

Round round_of(int group_rank, int num_machines, const AssignedRanks& ranks) {
  return {.machine_rank = group_rank,
          .num_machines = num_machines,
          .first_rank = ranks.first_rank,
          .world_size = ranks.world_size,
          .first_role_rank = ranks.first_role_rank,
          .role_world_size = ranks.role_world_size};
}

}  // namespace acc::launcher
