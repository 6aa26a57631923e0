// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/process_group.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string>

#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace process_group_test {

namespace {

using namespace std::chrono_literals;

// Binds a port of the loopback address; unless it listens, connections to it are refused.
class HeldPort {
 public:
  explicit HeldPort(bool listens) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    if (listens) REQUIRE(::listen(fd_, 1) == 0);
    socklen_t size = sizeof address;
    REQUIRE(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
  }
  ~HeldPort() { ::close(fd_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

acc::Error error_of(int rank, std::uint16_t port) {
  try {
    const acc::ProcessGroup group(
        {.rank = rank, .world_size = 2, .master_addr = "127.0.0.1", .master_port = port}, 1s);
  } catch (const acc::Error& error) {
    return error;
  }
  return acc::Error({.what = "none"});
}

}  // namespace

TEST_CASE("process_group: rank 0 names a port that is in use", "[runtime]") {
  const HeldPort held(true);
  const acc::Error error = error_of(0, held.port());
  CHECK(error.kind() == acc::ErrorKind::system);
  CHECK(error.problems().front().what ==
        "127.0.0.1:" + std::to_string(held.port()) + " is in use by another program");
  CHECK(error.problems().front().where == "rank 0");
}

TEST_CASE("process_group: a rank that does not find rank 0 names the address", "[runtime]") {
  const HeldPort held(false);
  const acc::Error error = error_of(1, held.port());
  CHECK(error.kind() == acc::ErrorKind::rendezvous);
  CHECK(error.problems().front().where == "rank 1");
  INFO(error.what());
  CHECK(error.problems().front().what.find("127.0.0.1:" + std::to_string(held.port()) + " within 1 s") !=
        std::string::npos);
}

TEST_CASE("process_group: writing to a process that has ended is an error, and does not raise SIGPIPE",
          "[runtime]") {
  ::signal(SIGPIPE, SIG_DFL);
  const acc::ProcessGroup group({.rank = 0, .world_size = 1, .master_addr = "127.0.0.1", .master_port = 0},
                                5s);
  int ends[2] = {};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  ::close(ends[1]);
  CHECK(::write(ends[0], "x", 1) == -1);
  CHECK(errno == EPIPE);
  ::close(ends[0]);
}

TEST_CASE("process_group: an exception of the program's own backward is not taken for a lost process",
          "[runtime]") {
  acc::ProcessGroup group({.rank = 0, .world_size = 1, .master_addr = "127.0.0.1", .master_port = 0}, 5s);
  const auto throws = [&](const auto& error) {
    group.with_explained_errors("backward", [&] { throw error; });
  };
  const auto fails = [&](const char* text) { throws(std::runtime_error(text)); };
  CHECK_THROWS_WITH(fails("the reward server timed out"), "the reward server timed out");
  CHECK_THROWS_WITH(fails("10.0.0.7:80: Connection refused"), "10.0.0.7:80: Connection refused");
  CHECK_THROWS_AS(
      fails("[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer"),
      acc::Error);
  const auto fails_in = [&](const char* file, const char* text) {
    throws(c10::Error({.function = "wait", .file = file, .line = 90}, text));
  };
  CHECK_THROWS_AS(fails_in("/home/me/train.cpp", "the reward server timed out"), c10::Error);
  CHECK_THROWS_AS(
      fails_in("/pytorch/c10/cuda/CUDAException.cpp", "CUDA error: the launch timed out and was terminated"),
      c10::Error);
  CHECK_THROWS_AS(fails_in("/pytorch/torch/csrc/distributed/c10d/Work.cpp", "Operation timed out!"),
                  acc::Error);
}

TEST_CASE("process_group: a program's own SIGPIPE handler is kept", "[runtime]") {
  const auto handler = [](int) {};
  ::signal(SIGPIPE, handler);
  const acc::ProcessGroup group({.rank = 0, .world_size = 1, .master_addr = "127.0.0.1", .master_port = 0},
                                5s);
  CHECK(::signal(SIGPIPE, SIG_DFL) == static_cast<void (*)(int)>(handler));
}

}  // namespace process_group_test
