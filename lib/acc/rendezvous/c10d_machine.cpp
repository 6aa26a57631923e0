// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/c10d_machine.hpp"

#include <algorithm>

namespace acc::launcher {
namespace {

// A deadline that begins with this step.
constexpr WallTime kToBeSaid = WallTime::min();

bool mentions(const RendezvousState& state, const RendezvousNode& node) {
  return state.participants.contains(node) || state.wait_list.contains(node) ||
         state.redundancy_list.contains(node);
}

// Ranks in the order of the nodes.
void complete(RendezvousState& state) {
  state.complete = true;
  state.deadline.reset();
  std::int64_t rank = 0;
  for (auto& [node, its_rank] : state.participants) its_rank = rank++;
}

}  // namespace

C10dMachine::C10dMachine(const Settings& settings) : settings_(settings) {}

void C10dMachine::add(const RendezvousNode& node) {
  std::erase(leaving_, node);
  if (std::ranges::find(own_, node) == own_.end()) own_.push_back(node);
}

void C10dMachine::remove(const RendezvousNode& node) {
  if (std::erase(own_, node) > 0) leaving_.push_back(node);
}

void C10dMachine::next_round(Now now) {
  if (joined_) {
    left_ = joined_;
    needs_no_call_ = joined_alone_;
  }
  joined_.reset();
  wanted_ = true;
  join_deadline_ = now.steady + settings_.join_timeout;
}

C10dMachine::Step C10dMachine::step(const RendezvousState& read, Now now) {
  observe(read, now);
  std::erase_if(leaving_, [&](const RendezvousNode& node) { return !mentions(read, node); });
  const RendezvousState alive = without_dead(read, now);
  Step step = {.state = alive};
  RendezvousState& state = step.state;
  if (!state.closed) {
    leave(state);
    const bool too_late = wanted_ && now.steady >= join_deadline_;
    if (too_late && !(state.complete && anyone_in(state))) {
      for (const RendezvousNode& node : own_) drop(state, node);
    } else if (wanted_ || joined_) {
      for (const RendezvousNode& node : own_) enter(state, node);
      complete_if_due(state, now);
    }
    state.closed = closing_;
    step.write = state != alive || own_heartbeat_due(state, now);
  }
  if (!step.write) {
    step.outlook = look(state, now);
    step.next = wanted_ ? join_deadline_ : SteadyTime::max();
    if (wanted_ && !state.complete && state.deadline) {
      step.next = std::min(step.next, deadline_seen_ + settings_.last_call);
    }
    return step;
  }
  const WallTime stamp = now.wall + ahead_;
  if (state.deadline == kToBeSaid) state.deadline = stamp + settings_.last_call;
  for (const RendezvousNode& node : own_) {
    if (mentions(state, node)) state.last_heartbeats[node] = stamp;
  }
  if (!state.times_have_zone) state.times_have_zone = settings_.times_have_zone;
  return step;
}

// What is new in the state is new now, whatever its times say.
void C10dMachine::observe(const RendezvousState& read, Now now) {
  std::erase_if(heartbeats_,
                [&](const auto& heartbeat) { return !read.last_heartbeats.contains(heartbeat.first); });
  for (const auto& [node, value] : read.last_heartbeats) {
    const auto [heartbeat, is_new] = heartbeats_.try_emplace(node, Heartbeat{value, now.steady});
    if (!is_new && heartbeat->second.value == value) continue;
    heartbeat->second = {value, now.steady};
    ahead_ = std::max(ahead_, value - now.wall);
  }
  if (read.deadline != deadline_) deadline_seen_ = now.steady;
  deadline_ = read.deadline;
}

RendezvousState C10dMachine::without_dead(RendezvousState state, Now now) const {
  const auto timeout = settings_.keep_alive_interval * settings_.keep_alive_max_attempt;
  for (const auto& [node, heartbeat] : heartbeats_) {
    if (now.steady - heartbeat.seen < timeout) continue;
    if (std::ranges::find(own_, node) == own_.end()) drop(state, node);
  }
  return state;
}

// Own nodes that were removed, and all of them from the round that is over for us.
void C10dMachine::leave(RendezvousState& state) const {
  for (const RendezvousNode& node : leaving_) drop(state, node);
  if (!wanted_ || !state.complete || state.round != left_) return;
  for (const RendezvousNode& node : own_) drop_participant(state, node);
}

void C10dMachine::enter(RendezvousState& state, const RendezvousNode& node) const {
  const bool full = state.participants.size() >= settings_.max_nodes;
  if (state.participants.contains(node)) return;
  if (!state.complete) {
    if (!wanted_) return;
    state.redundancy_list.erase(node);
    state.wait_list.erase(node);
    state.participants[node] = 0;
    if (state.participants.size() == settings_.max_nodes) complete(state);
  } else if (!full) {
    state.redundancy_list.erase(node);
    state.wait_list.insert(node);
  } else if (!state.wait_list.contains(node)) {
    state.redundancy_list.insert(node);
  }
}

// With enough nodes the last call begins; when it is over the round is complete. Who is on the wait list has
// not seen yet that the round is open: without it the round would be over as soon as it began.
void C10dMachine::complete_if_due(RendezvousState& state, Now now) const {
  const std::size_t nodes = state.participants.size();
  if (state.complete || !anyone_in(state)) return;
  if (nodes < settings_.min_nodes || nodes > settings_.max_nodes) return;
  if (needs_no_call_ && state.wait_list.empty()) {
    complete(state);
  } else if (!state.deadline) {
    state.deadline = kToBeSaid;
  } else if (state.wait_list.empty() && state.deadline == deadline_ &&
             now.steady - deadline_seen_ >= settings_.last_call) {
    complete(state);
  }
}

bool C10dMachine::own_heartbeat_due(const RendezvousState& state, Now now) const {
  return std::ranges::any_of(own_, [&](const RendezvousNode& node) {
    if (!mentions(state, node)) return false;
    const auto heartbeat = heartbeats_.find(node);
    return heartbeat == heartbeats_.end() ||
           now.steady - heartbeat->second.seen >= settings_.keep_alive_interval;
  });
}

C10dMachine::Outlook C10dMachine::look(const RendezvousState& state, Now now) {
  if (state.closed) return Outlook::closed;
  if (own_.empty()) return Outlook::idle;
  if (joined_) {
    const bool same = state.complete && state.round == joined_ &&
                      state.participants.size() == joined_nodes_ && state.wait_list.empty();
    return same ? Outlook::in_round : Outlook::changed;
  }
  if (!wanted_) return Outlook::idle;
  if (state.complete && anyone_in(state)) {
    wanted_ = false;
    joined_ = state.round;
    joined_nodes_ = state.participants.size();
    joined_alone_ = std::ranges::all_of(state.participants, [&](const auto& entry) {
      return std::ranges::find(own_, entry.first) != own_.end();
    });
    needs_no_call_ = false;
    return state.wait_list.empty() ? Outlook::in_round : Outlook::changed;
  }
  const auto is_spare = [&](const RendezvousNode& node) { return state.redundancy_list.contains(node); };
  if (std::ranges::all_of(own_, is_spare)) {
    join_deadline_ = now.steady + settings_.join_timeout;
    return Outlook::spare;
  }
  return now.steady >= join_deadline_ ? Outlook::timed_out : Outlook::joining;
}

bool C10dMachine::anyone_in(const RendezvousState& state) const {
  return std::ranges::any_of(own_, [&](const auto& node) { return state.participants.contains(node); });
}

// What torchrun does after a participant is gone, whoever removes it.
void C10dMachine::drop_participant(RendezvousState& state, const RendezvousNode& node) const {
  if (state.participants.erase(node) == 0) return;
  state.last_heartbeats.erase(node);
  if (!state.complete) {
    if (state.participants.size() < settings_.min_nodes) state.deadline.reset();
  } else if (state.participants.empty()) {
    state.complete = false;
    ++state.round;
  }
}

void C10dMachine::drop(RendezvousState& state, const RendezvousNode& node) const {
  drop_participant(state, node);
  state.wait_list.erase(node);
  state.redundancy_list.erase(node);
  state.last_heartbeats.erase(node);
}

}  // namespace acc::launcher
