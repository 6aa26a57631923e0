// SPDX-License-Identifier: Apache-2.0
#include "acc/store/waits.hpp"

#include <algorithm>
#include <utility>

namespace acc {

void Waits::wait(ClientId client, std::vector<std::string> missing) {
  cancel(client);
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  for (const std::string& key : missing) by_key_[key].push_back(client);
  const std::size_t count = missing.size();
  waiting_[client] = {.keys = std::move(missing), .missing = count};
}

void Waits::block(ClientId client, const std::string& key, std::int64_t world_size) {
  cancel(client);
  blocked_[key].push_back({client, world_size});
  waiting_[client] = {.keys = {key}, .missing = 1, .for_count = true};
}

void Waits::cancel(ClientId client) {
  const auto node = waiting_.extract(client);
  if (!node) return;
  const auto leave = [&](auto& lists, const std::string& key, auto is_client) {
    const auto list = lists.find(key);
    if (list == lists.end()) return;
    std::erase_if(list->second, is_client);
    if (list->second.empty()) lists.erase(list);
  };
  for (const std::string& key : node.mapped().keys) {
    if (node.mapped().for_count) {
      leave(blocked_, key, [&](const Blocked& blocked) { return blocked.client == client; });
    } else {
      leave(by_key_, key, [&](ClientId other) { return other == client; });
    }
  }
}

void Waits::appeared(std::string_view key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  const auto node = by_key_.extract(found);
  for (const ClientId client : node.mapped()) serve(client);
}

void Waits::pushed(std::string_view queue) {
  const auto found = by_key_.find(queue);
  if (found == by_key_.end()) return;
  const ClientId client = found->second.front();
  turns_[client].push_back(found->first);
  ++turns_by_queue_[found->first];
  found->second.erase(found->second.begin());
  if (found->second.empty()) by_key_.erase(found);
  serve(client);
}

void Waits::counted(std::string_view key, std::int64_t count) {
  const auto found = blocked_.find(key);
  if (found == blocked_.end()) return;
  std::erase_if(found->second, [&](const Blocked& blocked) {
    if (blocked.world_size > count) return false;
    serve(blocked.client);
    return true;
  });
  if (found->second.empty()) blocked_.erase(found);
}

void Waits::serve(ClientId client) {
  const auto found = waiting_.find(client);
  if (--found->second.missing > 0) return;
  waiting_.erase(found);
  woken_.push_back(client);
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

}  // namespace acc
