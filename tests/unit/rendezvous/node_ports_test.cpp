// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/node_ports.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace node_ports_test {

using namespace acc;
using namespace acc::launcher;

namespace {

Descriptor listen_on(std::uint16_t port) {
  Descriptor socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  auto* const socket_address = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), socket_address, sizeof address) != 0 || ::listen(socket.get(), 1) != 0)
    socket.reset();
  return socket;
}

}  // namespace

TEST_CASE("node_ports: a worker can listen on a reserved port repeatedly", "[rendezvous]") {
  const ReservedPort reserved(0);
  REQUIRE(reserved.port() != 0);
  CHECK(listen_on(reserved.port()));
  CHECK(listen_on(reserved.port()));
}

TEST_CASE("node_ports: a port in use is an error", "[rendezvous]") {
  std::uint16_t port = 0;
  {
    const ReservedPort free(0);
    port = free.port();
  }
  const Descriptor listener = listen_on(port);
  REQUIRE(listener);
  CHECK(test::error_of([&] { ReservedPort{port}; }).find("Address already in use") != std::string::npos);
}

TEST_CASE("node_ports: an address is a port of the given host, or a host and a port", "[rendezvous]") {
  CHECK(parse_address("4001", "node0") == StoreAddress{"node0", 4001});
  CHECK(parse_address("10.0.0.2:4001", "node0") == StoreAddress{"10.0.0.2", 4001});
  CHECK(parse_address("[fd00::2]:4001", "node0") == StoreAddress{"fd00::2", 4001});
  for (const char* text : {"", "0", "65536", "host:", "host:http", "-1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_address(text, "node0"));
  }
}

}  // namespace node_ports_test
