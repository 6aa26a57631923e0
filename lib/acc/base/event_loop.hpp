// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

/// What the rendezvous and its store take of Asio and of the clocks: the loop and its timers here, sockets in
/// `acc/store/network.hpp`. tests/simulation compiles the same sources against headers of these names, in
/// which many nodes share one thread, and time and network are simulated.
namespace acc::net {

using boost::asio::basic_waitable_timer;
using boost::asio::executor_work_guard;
using boost::asio::io_context;
using boost::asio::make_work_guard;
using boost::asio::post;
using boost::asio::steady_timer;
using std::chrono::steady_clock;
using std::chrono::system_clock;

/// The variable of type `Value` that a loop has for itself: each loop has a thread of its own.
template <class Value>
Value& of_loop() {
  static thread_local Value value;
  return value;
}

}  // namespace acc::net
