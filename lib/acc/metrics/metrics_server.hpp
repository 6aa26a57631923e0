// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "acc/metrics/metrics_text.hpp"

namespace acc::launcher {

/// Answers `GET /metrics` over HTTP on the thread of its loop. A client has ten seconds for its request and
/// ten for taking the answer; at most 64 are served at a time, and others wait.
class MetricsServer {
 public:
  /// Listens at once. `read` is called for each request; what it throws is the answer, with status 503.
  /// Throws Error{system} naming the address when it is taken or not this machine's.
  MetricsServer(boost::asio::io_context& loop, const boost::asio::ip::tcp::endpoint& address,
                std::function<std::string(MetricsFormat)> read);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// `127.0.0.1:9499`, with the port that was chosen if it was 0.
  std::string address() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace acc::launcher
