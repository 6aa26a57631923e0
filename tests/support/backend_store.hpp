// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>

#include "acc/store/client.hpp"
#include "acc/store/server.hpp"
#include "support/drive.hpp"

namespace acc::test {

using namespace launcher;

/// A store on the test's loop, and a client that plays the other agents.
struct BackendStore {
  boost::asio::io_context loop = {};
  std::optional<StoreServer> server{std::in_place, loop, StoreServerOptions{}};
  StoreClient peer{loop};
  StoreAddress address = {"127.0.0.1", server->port()};

  BackendStore() { connect(peer); }
  void connect(StoreClient& client) const {
    client.connect(
        address, RunningClock::now() + std::chrono::seconds(30), [](const std::string&) {},
        [](const auto&) {});
  }

  template <typename Condition>
  void until(Condition reached) {
    drive(loop, reached);
  }
  /// Absent keys read "(none)".
  std::string get(const std::string& key) {
    std::optional<std::string> value;
    peer.get(key, [&](StoreOutcome, const auto& got) { value = got.value_or("(none)"); });
    until([&] { return value.has_value(); });
    return *value;
  }
  /// Waits for the key.
  std::string await(const std::string& key) {
    std::optional<std::string> value;
    peer.get_when_present({key}, std::chrono::seconds(30), [&](StoreOutcome, const auto& got) {
      value = got.empty() ? "(none)" : got.front();
    });
    until([&] { return value.has_value(); });
    return *value;
  }
};

}  // namespace acc::test
