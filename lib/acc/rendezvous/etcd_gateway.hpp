// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "acc/rendezvous/etcd_messages.hpp"

namespace acc::launcher {

/// What came back. Without an answer `status` is 0 and `body` says why, for people.
struct EtcdReply {
  int status = 0;
  std::string body = {};
};

/// The way to an etcd server.
class EtcdGateway {
 public:
  using Handler = std::function<void(const EtcdReply&)>;

  EtcdGateway() = default;
  virtual ~EtcdGateway() = default;
  EtcdGateway(const EtcdGateway&) = delete;
  EtcdGateway& operator=(const EtcdGateway&) = delete;

  /// One after the other, in order. Each is answered within seconds, from the loop, never from within; not
  /// at all once this has ended.
  virtual void post(const EtcdRequest& request, Handler handler) = 0;
};

}  // namespace acc::launcher
