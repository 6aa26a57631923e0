// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace acc::launcher {

/// A request to etcd's JSON gateway, API version 3.
struct EtcdRequest {
  std::string path = {};
  std::string body = {};

  bool operator==(const EtcdRequest&) const = default;
};

/// A lease of `ttl_seconds`, which must be kept alive.
EtcdRequest etcd_grant(int ttl_seconds);
EtcdRequest etcd_keep_alive(std::int64_t lease);
/// Ends the lease and removes its keys.
EtcdRequest etcd_revoke(std::int64_t lease);
EtcdRequest etcd_read(std::string_view key);
/// Writes `value` under `lease` if the key has not been written since `revision`; 0: if it does not exist.
EtcdRequest etcd_write_if(std::string_view key, std::string_view value, std::int64_t lease,
                          std::int64_t revision);

/// A key as it was read; revision 0: it does not exist.
struct EtcdKey {
  std::string value = {};
  std::int64_t revision = 0;
  std::int64_t lease = 0;

  bool operator==(const EtcdKey&) const = default;
};

// Parsers of reply bodies; absent: not a reply of that kind.

std::optional<std::int64_t> etcd_granted(std::string_view body);
/// Whether the lease is alive.
std::optional<bool> etcd_kept_alive(std::string_view body);
std::optional<EtcdKey> etcd_key(std::string_view body);
/// Whether it was written.
std::optional<bool> etcd_written(std::string_view body);
/// The message of an error reply; the body itself if it has another form.
std::string etcd_error(std::string_view body);

/// An HTTP reply. If there was none, `status` is 0 and `body` says why.
struct EtcdReply {
  int status = 0;
  std::string body = {};
};

/// Sends requests to an etcd server.
class EtcdGateway {
 public:
  using Handler = std::function<void(const EtcdReply&)>;

  EtcdGateway() = default;
  virtual ~EtcdGateway() = default;
  EtcdGateway(const EtcdGateway&) = delete;
  EtcdGateway& operator=(const EtcdGateway&) = delete;

  /// Sends requests one at a time, in order. Calls `handler` within seconds, from the event loop, never
  /// during the call and not after the gateway is destroyed.
  virtual void post(const EtcdRequest& request, Handler handler) = 0;
};

}  // namespace acc::launcher
