// SPDX-License-Identifier: Apache-2.0
#include "acc/store/turns.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace acc::launcher {
namespace {

constexpr auto kSlice = std::chrono::milliseconds(2);

}  // namespace

void Turns::add(Slice slice) {
  tasks_.push_back(std::move(slice));
  if (std::exchange(running_, true)) return;
  boost::asio::post(loop_, [self = shared_from_this()] { self->run(); });
}

void Turns::run() {
  running_ = false;
  if (tasks_.empty()) return;
  Slice slice = std::move(tasks_.front());
  tasks_.pop_front();
  const bool more = slice(Clock::now() + kSlice);
  if (more) return add(std::move(slice));
  if (tasks_.empty() || std::exchange(running_, true)) return;
  boost::asio::post(loop_, [self = shared_from_this()] { self->run(); });
}

}  // namespace acc::launcher
