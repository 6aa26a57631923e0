// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/c10d_machine.hpp"

#include <algorithm>
#include <utility>

namespace acc::launcher {
namespace {

// The deadline of a last call that begins in this step, until the step ends and sets its time.
constexpr WallTime kStartsNow = WallTime::min();
// Launchers of acc that follow each other's times lose this of a wrong clock with each of them.
constexpr auto kSkewLost = std::chrono::seconds(1);

bool mentions(const RendezvousState& state, const RendezvousNode& node) {
  return state.participants.contains(node) || state.wait_list.contains(node) ||
         state.redundancy_list.contains(node);
}

// Assigns ranks in the order of the nodes.
void complete(RendezvousState& state) {
  state.complete = true;
  state.deadline.reset();
  std::int64_t next_rank = 0;
  for (auto& [node, rank] : state.participants) rank = next_rank++;
}

}  // namespace

C10dMachine::C10dMachine(const Settings& settings) : settings_(settings) {}

void C10dMachine::add(const RendezvousNode& node) {
  leaving_.erase(node);
  const std::uint64_t next = arrivals_.empty() ? 0 : arrivals_.rbegin()->first + 1;
  if (own_nodes_.try_emplace(node, next).second) arrivals_.emplace(next, node);
}

void C10dMachine::remove(const RendezvousNode& node) {
  const auto entry = own_nodes_.find(node);
  if (entry == own_nodes_.end()) return;
  arrivals_.erase(entry->second);
  own_nodes_.erase(entry);
  leaving_.insert(node);
}

void C10dMachine::next_round(Moment now) {
  finishing_ = false;
  if (joined_round_) {
    left_round_ = joined_round_;
    skips_last_call_ = joined_alone_;
  }
  joined_round_.reset();
  wants_round_ = true;
  join_deadline_ = now.running + settings_.join_timeout;
}

C10dMachine::Step C10dMachine::step(const RendezvousState& stored_state, Moment now) {
  observe(stored_state, now);
  std::erase_if(leaving_, [&](const RendezvousNode& node) { return !mentions(stored_state, node); });
  const RendezvousState live_state = without_dead(stored_state, now);
  Step step = {.state = live_state};
  RendezvousState& state = step.state;
  // A spare waits without a limit; it begins when a place may be free.
  if (spare_) join_deadline_ = now.running + settings_.join_timeout;
  if (!state.closed) {
    leave(state);
    const bool in_round = state.complete && anyone_in(state);
    const bool too_late = wants_round_ && now.running >= join_deadline_;
    const bool was_in_round = joined_round_ || left_round_;
    const bool others_job = state.complete || (!was_in_round && state.round > 0);
    const bool leaves_others = closing_ && others_job && !in_round;
    if (leaves_others || (too_late && !in_round)) {
      for (const auto& [number, node] : arrivals_) drop(state, node);
    } else if (wants_round_ || (joined_round_ && !finishing_)) {
      for (const auto& [number, node] : arrivals_) enter(state, node);
      complete_if_due(state, now);
    }
    state.closed = closing_ && !leaves_others;
    step.write = state != live_state || own_heartbeat_due(state, now);
  }
  if (!step.write) {
    step.status = update_status(state, now);
    step.next = RunningTime::max();
    const auto last_call_end = deadline_read_ + settings_.last_call;
    if (wants_round_ && now.running < join_deadline_) step.next = join_deadline_;
    if (wants_round_ && !state.complete && state.deadline && now.running < last_call_end)
      step.next = std::min(step.next, last_call_end);
    return step;
  }
  const WallTime stamp = now.wall + skew_;
  if (state.deadline == kStartsNow) state.deadline = stamp + settings_.last_call;
  for (const auto& [node, number] : own_nodes_) {
    if (mentions(state, node)) state.last_heartbeats[node] = stamp;
  }
  if (!state.times_have_zone) state.times_have_zone = settings_.times_have_zone;
  return step;
}

// Times what has changed in the state by our own clock: clocks of nodes may differ.
void C10dMachine::observe(const RendezvousState& stored_state, Moment now) {
  std::erase_if(heartbeats_, [&](const auto& heartbeat) {
    return !stored_state.last_heartbeats.contains(heartbeat.first);
  });
  for (const auto& [node, value] : stored_state.last_heartbeats) {
    const auto [heartbeat, is_new] = heartbeats_.try_emplace(node);
    if (!is_new && heartbeat->second.value == value) continue;
    heartbeat->second = {.value = value, .read_time = now, .skew = value - now.wall};
  }
  skew_ = {};
  for (const auto& [node, heartbeat] : heartbeats_) {
    if (!own_nodes_.contains(node)) skew_ = std::max(skew_, heartbeat.skew - kSkewLost);
  }
  if (stored_state.deadline != deadline_) deadline_read_ = now.running;
  deadline_ = stored_state.deadline;
}

RendezvousState C10dMachine::without_dead(RendezvousState state, Moment now) const {
  const auto timeout = settings_.keep_alive_interval * settings_.keep_alive_max_attempt;
  for (const auto& [node, heartbeat] : heartbeats_) {
    if (now.running - heartbeat.read_time.running < timeout) continue;
    if (!own_nodes_.contains(node)) drop(state, node);
  }
  return state;
}

// Removes own nodes that have left, and all own nodes from a round that they are done with.
void C10dMachine::leave(RendezvousState& state) const {
  for (const RendezvousNode& node : leaving_) drop(state, node);
  if (!wants_round_ || !state.complete || state.round != left_round_) return;
  for (const auto& [node, number] : own_nodes_) drop_participant(state, node);
}

void C10dMachine::enter(RendezvousState& state, const RendezvousNode& node) const {
  const bool is_full = state.participants.size() >= settings_.max_nodes;
  if (state.participants.contains(node)) return;
  if (!state.complete) {
    if (!wants_round_) return;
    state.redundancy_list.erase(node);
    state.wait_list.erase(node);
    state.participants[node] = 0;
    if (state.participants.size() == settings_.max_nodes) {
      complete(state);
      state.redundancy_list.merge(std::exchange(state.wait_list, {}));
    }
  } else if (!is_full) {
    state.redundancy_list.erase(node);
    state.wait_list.insert(node);
  } else {
    // One on the wait list would make the others end their round, again and again, in which it has no place.
    state.wait_list.erase(node);
    state.redundancy_list.insert(node);
  }
}

// With enough nodes the last call begins; when it is over, the round is complete. A node on the wait list has
// not yet seen that the round is open: a round without it would be over as soon as it began.
void C10dMachine::complete_if_due(RendezvousState& state, Moment now) const {
  const std::size_t nodes = state.participants.size();
  if (state.complete || !anyone_in(state)) return;
  if (nodes < settings_.min_nodes || nodes > settings_.max_nodes) return;
  if (skips_last_call_ && state.wait_list.empty()) {
    complete(state);
  } else if (!state.deadline) {
    state.deadline = kStartsNow;
  } else if (state.wait_list.empty() && state.deadline == deadline_ &&
             now.running - deadline_read_ >= settings_.last_call) {
    complete(state);
  }
}

// For the others, a pause of this process is silence: what is due is written at once after it.
bool C10dMachine::own_heartbeat_due(const RendezvousState& state, Moment now) const {
  return std::ranges::any_of(own_nodes_, [&](const auto& entry) {
    const RendezvousNode& node = entry.first;
    if (!mentions(state, node)) return false;
    const auto heartbeat = heartbeats_.find(node);
    return heartbeat == heartbeats_.end() ||
           now.steady - heartbeat->second.read_time.steady >= settings_.keep_alive_interval;
  });
}

C10dMachine::Status C10dMachine::update_status(const RendezvousState& state, Moment now) {
  spare_ = false;
  if (state.closed || closing_) return Status::closed;
  if (own_nodes_.empty()) return Status::idle;
  // Nodes on the wait list have no place in a full round. To leave it would keep the others waiting for their
  // ranks until they fail.
  const bool others_wait = !state.wait_list.empty() && state.participants.size() < settings_.max_nodes;
  if (joined_round_) {
    const bool is_same = state.complete && state.round == joined_round_ &&
                         state.participants.size() == joined_nodes_ && !others_wait;
    return is_same ? Status::in_round : Status::changed;
  }
  if (!wants_round_) return Status::idle;
  if (state.complete && anyone_in(state)) {
    wants_round_ = false;
    joined_round_ = state.round;
    joined_nodes_ = state.participants.size();
    joined_alone_ = std::ranges::all_of(state.participants,
                                        [&](const auto& entry) { return own_nodes_.contains(entry.first); });
    skips_last_call_ = false;
    return others_wait || lacks_nodes(state) ? Status::changed : Status::in_round;
  }
  const auto is_spare = [&](const auto& entry) { return state.redundancy_list.contains(entry.first); };
  spare_ = std::ranges::all_of(own_nodes_, is_spare);
  if (spare_) return Status::spare;
  return now.running >= join_deadline_ ? Status::timed_out : Status::joining;
}

// A node that was lost since the round was complete has left a gap, or too few.
bool C10dMachine::lacks_nodes(const RendezvousState& state) const {
  const auto nodes = static_cast<std::int64_t>(state.participants.size());
  return state.participants.size() < settings_.min_nodes ||
         std::ranges::any_of(state.participants, [&](const auto& entry) { return entry.second >= nodes; });
}

bool C10dMachine::anyone_in(const RendezvousState& state) const {
  return std::ranges::any_of(own_nodes_,
                             [&](const auto& entry) { return state.participants.contains(entry.first); });
}

// Updates the state as torchrun does when a participant is gone.
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
