// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "acc/base/event_loop.hpp"
#include "acc/rendezvous/etcd_messages.hpp"

namespace acc::launcher {

struct EtcdCurlOptions {
  /// As in `https://node0:2379`.
  std::string url = {};
  /// TLS files, in PEM; empty: none, and for `cacert` the system's.
  std::string cert = {};
  std::string key = {};
  std::string cacert = {};
  /// Timeout of one request.
  std::chrono::milliseconds timeout = std::chrono::seconds(2);
};

/// Talks to an etcd server over HTTP with the system's libcurl, which only this class loads. A thread of its
/// own waits for replies, so the event loop never blocks.
class EtcdCurl : public EtcdGateway {
 public:
  /// Throws Error{system} if there is no libcurl.
  EtcdCurl(net::io_context& loop, const EtcdCurlOptions& options);
  /// Cancels pending requests; takes two seconds at most.
  ~EtcdCurl() override;

  void post(const EtcdRequest& request, Handler handler) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace acc::launcher
