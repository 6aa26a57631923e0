// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/endpoint.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::launcher::Endpoint;
using acc::launcher::parse_endpoint;

TEST_CASE("endpoint: a host, with a port or without", "[plan]") {
  CHECK(parse_endpoint("node0", "") == Endpoint{"node0", {}});
  CHECK(parse_endpoint(" my-node_0.lan:29400 ", "") == Endpoint{"my-node_0.lan", 29400});
  CHECK(parse_endpoint("localhost:0", "") == Endpoint{"localhost", 0});
  CHECK(parse_endpoint("10.0.0.5:65535", "") == Endpoint{"10.0.0.5", 65535});
}

TEST_CASE("endpoint: an IPv6 address has brackets, or its last colon is the port's", "[plan]") {
  CHECK(parse_endpoint("[fe80::1]:29400", "") == Endpoint{"fe80::1", 29400});
  CHECK(parse_endpoint("[::1]", "") == Endpoint{"::1", {}});
  CHECK(parse_endpoint("::1:29400", "") == Endpoint{"::1", 29400});
}

TEST_CASE("endpoint: what is none is refused, with its flag", "[plan]") {
  const auto error = [](const std::string& text) {
    return acc::test::error_of([&] { parse_endpoint(text, "--rdzv-endpoint"); });
  };
  const std::string hint = " (as in node0, node0:29400 or [fe80::1]:29400)";
  for (const auto* text : {"", ":29400", "a b:1", "http://node:1", "[]:1"}) {
    CHECK(error(text) == "--rdzv-endpoint: '" + std::string(text) + "' is not host:port" + hint);
  }
  for (const auto* text : {"node:", "node:x", "node:65536", "node:-1", "node:029400", "node:1.0"}) {
    CHECK(error(text) == "--rdzv-endpoint: '" + std::string(text) +
                             "' has no port from 0 to 65535 behind its last colon" + hint);
  }
}
