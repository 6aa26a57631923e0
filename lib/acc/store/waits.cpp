// SPDX-License-Identifier: Apache-2.0
#include "acc/store/waits.hpp"

#include <algorithm>
#include <utility>

namespace acc::launcher {
namespace {

// Overhead of a key of a wait: its list entry, its place in the wait, its map node.
constexpr std::size_t kKeyBytes = 192;

}  // namespace

Waits::Wait& Waits::make(ClientId client) {
  cancel(client);
  current_[client] = next_id_;
  Wait& wait = waits_[next_id_++];
  wait.client = client;
  return wait;
}

void Waits::begin(ClientId client) {
  make(client);
}

void Waits::add(ClientId client, const std::string& key) {
  // Otherwise a client that waits and cancels all the time would leave more than is swept up.
  sweep(2);
  const WaitId id = current_.at(client);
  Wait& wait = waits_.at(id);
  const auto name = by_key_.try_emplace(key).first;
  name->second.push_back({id, wait.keys.size()});
  wait.keys.push_back({.name = name, .entry = std::prev(name->second.end())});
  wait.cost += key.size() + kKeyBytes;
  ++wait.missing;
}

bool Waits::all_added(ClientId client) {
  const auto current = current_.find(client);
  Wait& wait = waits_.at(current->second);
  wait.complete = true;
  if (wait.missing > 0) return false;
  waits_.erase(current->second);
  current_.erase(current);
  return true;
}

void Waits::block(ClientId client, const std::string& key, std::int64_t world_size) {
  Wait& wait = make(client);
  wait.counter = key;
  blocked_[key].push_back({current_.at(client), world_size});
}

void Waits::cancel(ClientId client) {
  const auto current = current_.extract(client);
  if (!current) return;
  const auto entry = waits_.find(current.mapped());
  Wait& wait = entry->second;
  if (!wait.counter.empty()) {
    const auto list = blocked_.find(wait.counter);
    std::erase_if(list->second, [&](const Blocked& one) { return one.wait == current.mapped(); });
    if (list->second.empty()) blocked_.erase(list);
  }
  if (wait.keys.empty()) {
    waits_.erase(entry);
    return;
  }
  wait.cancelled = true;
  cancelled_.push_back(current.mapped());
  constexpr std::size_t kAtOnce = 64;
  sweep(std::min(wait.keys.size(), kAtOnce));
}

bool Waits::sweep(std::size_t max_keys) {
  while (!cancelled_.empty()) {
    std::vector<Key>& keys = waits_.at(cancelled_.front()).keys;
    for (; !keys.empty() && max_keys > 0; --max_keys, keys.pop_back()) {
      const Key& key = keys.back();
      if (key.served) continue;
      key.name->second.erase(key.entry);
      if (key.name->second.empty()) by_key_.erase(key.name);
    }
    if (!keys.empty()) return true;
    waits_.erase(cancelled_.front());
    cancelled_.pop_front();
  }
  return false;
}

void Waits::appeared(std::string_view key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  const auto node = by_key_.extract(found);
  for (const Entry& entry : node.mapped()) serve(entry);
}

void Waits::pushed(std::string_view queue) {
  const auto match = by_key_.find(queue);
  if (match == by_key_.end()) return;
  std::list<Entry>& entries = match->second;
  const auto next =
      std::ranges::find_if(entries, [&](const Entry& entry) { return !waits_.at(entry.wait).cancelled; });
  if (next == entries.end()) return;
  const WaitId id = next->wait;
  turns_[waits_.at(id).client].push_back(match->first);
  ++turns_by_queue_[match->first];
  // The client may wait for the queue more than once.
  std::list<Entry> served;
  for (auto entry = next; entry != entries.end();) {
    const auto current = entry++;
    if (current->wait == id) served.splice(served.end(), entries, current);
  }
  if (entries.empty()) by_key_.erase(match);
  for (const Entry& entry : served) serve(entry);
}

void Waits::counted(std::string_view key, std::int64_t count) {
  const auto match = blocked_.find(key);
  if (match == blocked_.end()) return;
  std::erase_if(match->second, [&](const Blocked& blocked) {
    if (blocked.world_size > count) return false;
    wake(blocked.wait);
    return true;
  });
  if (match->second.empty()) blocked_.erase(match);
}

void Waits::serve(const Entry& entry) {
  Wait& wait = waits_.at(entry.wait);
  wait.keys[entry.index].served = true;
  if (--wait.missing == 0 && wait.complete && !wait.cancelled) wake(entry.wait);
}

void Waits::wake(WaitId id) {
  const auto found = waits_.find(id);
  woken_.push_back(found->second.client);
  current_.erase(found->second.client);
  waits_.erase(found);
}

std::vector<std::string> Waits::end_turns(ClientId client) {
  const auto node = turns_.extract(client);
  if (!node) return {};
  for (const std::string& queue : node.mapped()) {
    const auto found = turns_by_queue_.find(queue);
    if (--found->second == 0) turns_by_queue_.erase(found);
  }
  return std::move(node.mapped());
}

std::size_t Waits::turns(std::string_view queue) const {
  const auto found = turns_by_queue_.find(queue);
  return found == turns_by_queue_.end() ? 0 : found->second;
}

std::vector<ClientId> Waits::take_woken() {
  return std::exchange(woken_, {});
}

std::size_t Waits::cost(ClientId client) const {
  const auto found = current_.find(client);
  return found == current_.end() ? 0 : waits_.at(found->second).cost;
}

}  // namespace acc::launcher
