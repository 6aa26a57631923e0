// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace acc {

/// Asks a child process what may block for minutes, such as a driver, a disk or a resolver.
class ChildAnswer {
 public:
  struct Answer {
    /// What the child wrote until it ended.
    std::string text = {};
    /// Why there is none: `no process is left`; empty: there is one.
    std::string problem = {};
  };
  using Done = std::function<void(Answer)>;

  explicit ChildAnswer(boost::asio::io_context& loop);
  ~ChildAnswer();
  ChildAnswer(const ChildAnswer&) = delete;
  ChildAnswer& operator=(const ChildAnswer&) = delete;

  /// Runs `work` as run_in_child() does, and calls `done` once, from the event loop, with what it wrote to
  /// its descriptor, unless something else is asked or this object ends first. A child that is not done after
  /// `limit` is killed, and not waited for: whoever blocks in a driver cannot be killed. It is reaped by the
  /// caller.
  void ask(const std::function<void(int to)>& work, std::chrono::milliseconds limit, Done done);

  /// Asks the child to end by this signal, and kills it after `limit`; `done` is called as ever.
  void interrupt(int signal, std::chrono::milliseconds limit);

  /// For the answer, or for the end of a child that gave none in time.
  bool is_waiting() const;

 private:
  struct Impl;
  boost::asio::io_context& loop_;
  std::shared_ptr<Impl> impl_ = {};
};

}  // namespace acc
