// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace acc::launcher {

/// What is posted to etcd's JSON gateway, API version 3.
struct EtcdRequest {
  std::string path = {};
  std::string body = {};

  bool operator==(const EtcdRequest&) const = default;
};

/// A lease of `ttl_seconds`, which must be kept alive.
EtcdRequest etcd_grant(int ttl_seconds);
EtcdRequest etcd_keep_alive(std::int64_t lease);
/// The lease ends, and with it the keys that it holds.
EtcdRequest etcd_revoke(std::int64_t lease);
EtcdRequest etcd_read(std::string_view key);
/// Writes `value` under `lease`, provided that nobody has written the key since `revision`; 0: that it does
/// not exist.
EtcdRequest etcd_write_if(std::string_view key, std::string_view value, std::int64_t lease,
                          std::int64_t revision);

/// A key as it was read; revision 0: it does not exist.
struct EtcdKey {
  std::string value = {};
  std::int64_t revision = 0;
  std::int64_t lease = 0;

  bool operator==(const EtcdKey&) const = default;
};

// What the bodies of replies say; absent: not a reply of that kind.

std::optional<std::int64_t> etcd_granted(std::string_view body);
/// Whether the lease lives.
std::optional<bool> etcd_kept_alive(std::string_view body);
std::optional<EtcdKey> etcd_key(std::string_view body);
/// Whether it was written.
std::optional<bool> etcd_written(std::string_view body);
/// What an error reply says, for people; the body itself when it is of another form.
std::string etcd_error(std::string_view body);

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
