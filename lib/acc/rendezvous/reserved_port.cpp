// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/reserved_port.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "acc/base/error.hpp"

namespace acc::launcher {

// Linux lets two sockets with SO_REUSEADDR have one port as long as not both listen: ours never does.
ReservedPort::ReservedPort(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket_.get(), where, size) != 0 || ::getsockname(socket_.get(), where, &size) != 0) {
    throw Error({.kind = ErrorKind::system,
                 .what = std::string("the port cannot be had: ") + std::strerror(errno),
                 .where = "port " + std::to_string(port),
                 .hint = "another port, or none for a free one"});
  }
  port_ = ntohs(address.sin_port);
}

}  // namespace acc::launcher
