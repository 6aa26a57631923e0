// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace acc::launcher {

/// A place on the network as a person writes it. An IPv6 address has lost its brackets.
struct Endpoint {
  std::string host = {};
  std::optional<std::uint16_t> port = {};

  bool operator==(const Endpoint&) const = default;
};

/// `host`, `host:port`, `[v6]`, `[v6]:port`: torchrun 2.11's rules. Without brackets the last `:` is in front
/// of the port. Throws Error{usage} with `where` when it is none of them.
Endpoint parse_endpoint(std::string_view text, const std::string& where);

}  // namespace acc::launcher
