// SPDX-License-Identifier: Apache-2.0
// What scripts/bench/launch measures a store with: meeting PORT AGENTS. As many connections as a job has
// nodes go through torchrun's static rendezvous over PyTorch's TCPStore protocol: each says what it is, the
// first reads all of that and says who is which rank, each waits for its own rank. Prints the seconds that
// took, and keeps the connections until its standard input ends.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

enum Query : char {
  kValidate = 0,
  kSet = 1,
  kGet = 3,
  kAdd = 4,
  kWait = 6,
  kMultiGet = 10,
  kMultiSet = 11,
  kPing = 13
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(3);
}

template <typename Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::string text(const std::string& value) {
  return bytes_of(std::uint64_t{value.size()}) + value;
}

std::string role_info(int agent) {
  return "/torch.elastic.store/role_info/" + std::to_string(agent);
}

std::string assigned_ranks(int agent) {
  return "/torch.elastic.store/assigned_ranks/" + std::to_string(agent);
}

class Agent {
 public:
  explicit Agent(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (fd_ < 0) fail("socket");
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const timeval timeout = {.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);  // connect's, too
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("connect");
  }

  void send(const std::string& bytes) const {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (n <= 0) fail("send");
      done += static_cast<std::size_t>(n);
    }
  }

  std::string receive(std::size_t size) const {
    std::string bytes(size, '\0');
    for (std::size_t filled = 0; filled < size;) {
      const ssize_t n = ::recv(fd_, bytes.data() + filled, size - filled, 0);
      if (n <= 0) fail("recv");
      filled += static_cast<std::size_t>(n);
    }
    return bytes;
  }

  std::string receive_text() const {
    std::uint64_t size = 0;
    std::memcpy(&size, receive(sizeof size).data(), sizeof size);
    return receive(size);
  }

 private:
  int fd_;
};

void meet(std::uint16_t port, int count, std::vector<Agent>& agents) {
  for (int i = 0; i < count; ++i) {
    agents.emplace_back(port);
    agents.back().send(std::string(1, kValidate) + bytes_of(std::uint32_t{0x3C85F7CE}) + char(kPing) +
                       bytes_of(std::uint32_t(i)) + char(kAdd) + text("init/") + bytes_of(std::int64_t{1}));
  }
  for (const Agent& agent : agents) agent.receive(sizeof(std::uint32_t) + sizeof(std::int64_t));
  for (int i = 0; i < count; ++i) {
    const std::string info =
        R"({"role": "default", "rank": )" + std::to_string(i) + R"(, "local_world_size": 8})";
    const std::string one = bytes_of(std::uint64_t{1});
    agents[static_cast<std::size_t>(i)].send(std::string(1, kSet) + text(role_info(i)) + text(info) +
                                             char(kWait) + one + text(assigned_ranks(i)));
  }
  Agent first(port);
  std::string names = bytes_of(std::uint64_t(count));
  for (int i = 0; i < count; ++i) names += text(role_info(i));
  first.send(std::string(1, kValidate) + bytes_of(std::uint32_t{0x3C85F7CE}) + char(kWait) + names);
  first.receive(1);
  first.send(char(kMultiGet) + names);
  std::string ranks = std::string(1, kMultiSet) + bytes_of(std::uint64_t(count));
  for (int i = 0; i < count; ++i) ranks += text(assigned_ranks(i)) + text(first.receive_text());
  first.send(ranks);
  for (int i = 0; i < count; ++i) {
    const Agent& agent = agents[static_cast<std::size_t>(i)];
    agent.receive(1);
    agent.send(char(kGet) + text(assigned_ranks(i)));
  }
  for (const Agent& agent : agents) agent.receive_text();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const auto began = std::chrono::steady_clock::now();
  std::vector<Agent> agents;
  meet(static_cast<std::uint16_t>(std::atoi(argv[1])), std::atoi(argv[2]), agents);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%.6f\n", took.count());
  std::fflush(stdout);
  char byte = 0;
  return ::read(STDIN_FILENO, &byte, 1) < 0 ? 3 : 0;
}
