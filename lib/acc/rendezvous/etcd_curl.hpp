// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "acc/rendezvous/etcd_messages.hpp"

namespace acc::launcher {

struct EtcdCurlOptions {
  /// As in `https://node0:2379`.
  std::string url = {};
  /// Files of TLS, in PEM; empty: none, and for `cacert` the system's.
  std::string cert = {};
  std::string key = {};
  std::string cacert = {};
  /// Of one request.
  std::chrono::milliseconds timeout = std::chrono::seconds(2);
};

/// An etcd server over HTTP, by this machine's libcurl, which is loaded here and by nobody else. A thread of
/// its own waits for answers, so the loop never does.
class EtcdCurl : public EtcdGateway {
 public:
  /// Throws Error{system} where there is no libcurl.
  EtcdCurl(boost::asio::io_context& loop, const EtcdCurlOptions& options);
  /// Gives up what is under way; takes a second at most.
  ~EtcdCurl() override;

  void post(const EtcdRequest& request, Handler handler) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
