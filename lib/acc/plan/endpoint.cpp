// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/endpoint.hpp"

#include <algorithm>
#include <cctype>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

bool is_host(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_.:-%").find(c) != std::string_view::npos;
  });
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  const bool digits = !text.empty() && text.size() <= 5 && std::ranges::all_of(text, [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  const auto port = digits ? parse_integer(text) : std::nullopt;
  if (!port || *port > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

}  // namespace

Endpoint parse_endpoint(std::string_view text, const std::string& where) {
  const std::string_view whole = trim(text);
  const auto fail = [&](const std::string& what) -> Error {
    return Error({.what = "'" + std::string(whole) + "' " + what,
                  .where = where,
                  .hint = "as in node0, node0:29400 or [fe80::1]:29400"});
  };
  const bool brackets_alone = whole.starts_with('[') && whole.ends_with(']');
  const std::size_t colon = brackets_alone ? std::string_view::npos : whole.rfind(':');
  Endpoint endpoint;
  std::string_view host = whole.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (!is_host(host)) throw fail("is not host:port");
  endpoint.host = host;
  if (colon == std::string_view::npos) return endpoint;
  endpoint.port = parse_port(whole.substr(colon + 1));
  if (!endpoint.port) throw fail("has no port from 0 to 65535 behind its last colon");
  return endpoint;
}

}  // namespace acc::launcher
