// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "acc/store/protocol.hpp"

namespace acc::test {

using namespace launcher;

/// A blocking client socket (TCP_NODELAY, as PyTorch's) that sends arbitrary bytes to a store on this
/// machine. Throws after 30 s without a reply, so that a hang becomes a failed test.
class StoreClient {
 public:
  /// Connects, and sends nothing, to a v4 or v6 address; `source`: the local v4 address.
  explicit StoreClient(std::uint16_t port, const std::string& address = "127.0.0.1",
                       const std::string& source = "") {
    const bool v6 = address.find(':') != std::string::npos;
    fd_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const timeval limit = {.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    sockaddr_in from = {.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
    if (::inet_pton(AF_INET, source.c_str(), &from.sin_addr) == 1 &&
        ::bind(fd_, reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0) {
      fail("bind");
    }
    sockaddr_in v4_name = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
    sockaddr_in6 v6_name = {};
    v6_name.sin6_family = AF_INET6;
    v6_name.sin6_port = htons(port);
    ::inet_pton(v6 ? AF_INET6 : AF_INET, address.c_str(),
                v6 ? static_cast<void*>(&v6_name.sin6_addr) : static_cast<void*>(&v4_name.sin_addr));
    const auto* name = v6 ? reinterpret_cast<sockaddr*>(&v6_name) : reinterpret_cast<sockaddr*>(&v4_name);
    if (::connect(fd_, name, v6 ? sizeof v6_name : sizeof v4_name) != 0) fail("connect");
  }
  StoreClient(StoreClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;
  ~StoreClient() { leave(); }

  /// Connects and validates.
  static StoreClient greeted(std::uint16_t port, const std::string& address = "127.0.0.1") {
    StoreClient client(port, address);
    client.send({.op = Op::validate, .number = kStoreMagic});
    return client;
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) fail("send");
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void send(const Request& request) { send(encode(request)); }

  /// Reads `count` bytes, or fewer if the server closes.
  std::string receive(std::size_t size) {
    std::string bytes(size, '\0');
    std::size_t filled = 0;
    while (filled < size) {
      const ssize_t n = ::recv(fd_, bytes.data() + filled, size - filled, 0);
      if (n == 0 || (n < 0 && errno == ECONNRESET)) break;
      if (n < 0) fail("recv");
      filled += static_cast<std::size_t>(n);
    }
    bytes.resize(filled);
    return bytes;
  }

  std::int64_t receive_number() {
    std::int64_t value = 0;
    const std::string bytes = receive(sizeof value);
    if (bytes.size() != sizeof value) throw std::runtime_error("the store closed the connection");
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string receive_text() { return receive(static_cast<std::size_t>(receive_number())); }

  std::string get(const std::string& key) {
    send({.op = Op::get, .keys = {key}});
    return receive_text();
  }
  void set(const std::string& key, const std::string& value) {
    send({.op = Op::set, .keys = {key}, .values = {value}});
  }
  /// Returns when the server has carried out everything that was sent before.
  bool alive() try {
    send({.op = Op::ping, .number = 4711});
    return receive(4) == std::string("\x67\x12\x00\x00", 4);
  } catch (const std::runtime_error&) {
    return false;
  }
  /// Whether the server has not closed the connection.
  bool alive_so_far() {
    char byte = 0;
    const ssize_t n = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
  }
  /// Whether the server closes without another byte.
  bool closed_by_server() { return receive(1).empty(); }

  /// No more requests; replies can still be read.
  void end_requests() { ::shutdown(fd_, SHUT_WR); }
  void leave() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  /// Closes with a TCP reset, as a machine that is killed.
  void leave_rudely() {
    const linger now = {.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    leave();
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  }

  int fd_ = -1;
};

}  // namespace acc::test
