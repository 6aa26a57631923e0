// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>

#include "acc/base/subprocess/child_answer.hpp"
#include "acc/preflight/exchange.hpp"
#include "acc/preflight/self_probe.hpp"

namespace acc::launcher {

/// The checks of this node in a child process, since a driver, a disk or a resolver can block for minutes.
class NodeCheck {
 public:
  using Done = std::function<void(NodeCheckResult)>;

  explicit NodeCheck(boost::asio::io_context& loop);

  /// Starts them; calls `done` once, from the event loop, with what they came to, unless they are started
  /// again or this object ends first. The child is reaped by the caller.
  void start(const NodeCheckJob& job, Done done);

 private:
  ChildAnswer answer_;
};

/// Does them in this process and waits: the main part of the child.
NodeCheckResult run_node_check(const NodeCheckJob& job, const ExchangeLimits& limits = {});

/// One line of text, and back, where what people see is printable(): it has words of other nodes in it.
/// decode_result() throws std::exception for anything else.
std::string encode(const NodeCheckResult& result);
NodeCheckResult decode_result(std::string_view text);

}  // namespace acc::launcher
