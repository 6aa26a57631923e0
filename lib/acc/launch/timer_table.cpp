// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/timer_table.hpp"

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

namespace acc::launcher {
namespace {

using Json = nlohmann::json;

TimerTable::Time to_time(double seconds) {
  using namespace std::chrono;
  constexpr double kLatest = 4e9;
  return TimerTable::Time(
      duration_cast<system_clock::duration>(duration<double>(std::min(seconds, kLatest))));
}

}  // namespace

bool TimerTable::take(std::string_view line) {
  const Json request = Json::parse(line, nullptr, false);
  const auto number = [&](const char* key) { return request.contains(key) && request[key].is_number(); };
  if (!request.is_object() || !number("pid") || !number("expiration_time") || !number("signal")) return false;
  if (!request.contains("scope_id") || !request["scope_id"].is_string()) return false;
  const auto pid = request["pid"].get<pid_t>();
  const auto scope = request["scope_id"].get<std::string>();
  const auto seconds = request["expiration_time"].get<double>();
  const int signal = request["signal"].get<int>();
  if (pid <= 0 || signal >= NSIG) return false;
  if (seconds >= 0) {
    timers_[pid][scope] = {.when = to_time(seconds), .signal = signal};
    return true;
  }
  const auto timers = timers_.find(pid);
  if (timers == timers_.end()) return true;
  timers->second.erase(scope);
  if (timers->second.empty()) timers_.erase(timers);
  return true;
}

std::optional<TimerTable::Time> TimerTable::next() const {
  std::optional<Time> first;
  for (const auto& [pid, timers] : timers_) {
    for (const auto& [scope, timer] : timers) first = std::min(first.value_or(timer.when), timer.when);
  }
  return first;
}

std::vector<TimerTable::Expired> TimerTable::expire(Time now) {
  std::vector<Expired> expired;
  for (auto process = timers_.begin(); process != timers_.end();) {
    const std::pair<const std::string, Timer>* oldest = nullptr;
    bool any = false;
    for (const auto& timer : process->second) {
      if (timer.second.when > now) continue;
      any = true;
      if (timer.second.signal <= 0) continue;
      if (oldest == nullptr || timer.second.when < oldest->second.when) oldest = &timer;
    }
    if (oldest != nullptr) expired.push_back({process->first, oldest->first, oldest->second.signal});
    process = any ? timers_.erase(process) : std::next(process);
  }
  return expired;
}

}  // namespace acc::launcher
