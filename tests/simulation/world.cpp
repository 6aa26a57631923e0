// SPDX-License-Identifier: Apache-2.0
#include "simulation/world.hpp"

#include <fmt/format.h>

namespace simulation {
namespace {

World* current_world = nullptr;

}  // namespace

Clock::time_point Clock::now() {
  return World::current().now();
}

std::uint64_t Random::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

std::int64_t Random::between(std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(last - first + 1));
}

World::World(std::uint64_t seed) : random_(seed) {
  current_world = this;
}

World::~World() {
  current_world = nullptr;
}

World& World::current() {
  return *current_world;
}

void World::push(Time time, Callback<void()> event) {
  events_.push({time, ++number_, std::make_shared<Callback<void()>>(std::move(event))});
}

bool World::step(Time end) {
  if (events_.empty() || events_.top().time > end) {
    now_ = end;
    return false;
  }
  const Event event = events_.top();
  events_.pop();
  now_ = std::max(now_, event.time);
  (*event.body)();
  return true;
}

void World::trace(const std::string& text) {
  const Uncharged world;
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(now_.time_since_epoch());
  const std::string line =
      fmt::format("{:>10.6f} {}\n", static_cast<double>(time.count() - 3600000000) / 1e6, text);
  for (const char byte : line) hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  if (keeps_lines_) lines_ += line;
}

}  // namespace simulation
