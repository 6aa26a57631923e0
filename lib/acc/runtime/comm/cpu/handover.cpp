// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/handover.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "acc/base/machine.hpp"

namespace acc::detail {
namespace {

using std::chrono::milliseconds;

std::string random_text() {
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("{:08x}", random_number());
  return text;
}

struct Address {
  sockaddr_un address = {};
  socklen_t size = 0;
};

// A name that begins with a zero byte is not in the file system.
Address abstract_address(std::string_view name) {
  Address to;
  to.address.sun_family = AF_UNIX;
  name.copy(to.address.sun_path + 1, sizeof to.address.sun_path - 1);
  to.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return to;
}

Descriptor new_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool is_of_own_user(int socket) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

struct Message {
  std::string text = {};
  std::vector<Descriptor> descriptors = {};
};

// Nothing if there is no message in time, or the connection is closed.
std::optional<Message> receive_message(int socket, milliseconds timeout) {
  pollfd readable = {.fd = socket, .events = POLLIN, .revents = 0};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto remaining = [&] {
    const auto time = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(time.count(), 0, 1 << 30));
  };
  while (::poll(&readable, 1, remaining()) < 0) {
    if (errno != EINTR) return std::nullopt;
  }
  char text[128] = {};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxSentDescriptors)] = {};
  iovec bytes = {.iov_base = text, .iov_len = sizeof text};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  Message received;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); size >= 0 && header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= header->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + at, sizeof descriptor);
      received.descriptors.emplace_back(descriptor);
    }
  }
  if (size <= 0 || (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0) return std::nullopt;
  received.text.assign(text, static_cast<std::size_t>(size));
  return received;
}

std::runtime_error lost(int rank) {
  return std::runtime_error(fmt::format("cannot hand over the shared memory: no answer from rank {}", rank));
}

}  // namespace

Handover::Handover()
    : socket_(new_socket()), own_process_(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))) {
  if (!socket_ || !own_process_) return;
  const std::string name = "acc-" + random_text();
  const Address address = abstract_address(name);
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address.address), address.size) == 0 &&
      ::listen(socket_.get(), SOMAXCONN) == 0)
    address_ = name + '/' + random_text();
}

bool Handover::connect(int rank, int size, const std::string& address) {
  rank_ = rank;
  size_ = size;
  if (rank == 0) return !address_.empty();
  socket_ = new_socket();
  const std::size_t slash = address.find('/');
  if (!socket_ || !own_process_ || slash == std::string::npos) return false;
  const Address to = abstract_address(std::string_view(address).substr(0, slash));
  const int process[] = {own_process_.get()};
  return ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to.address), to.size) == 0 &&
         is_of_own_user(socket_.get()) &&
         send_message(socket_.get(), fmt::format("{} {}", rank_, address.substr(slash + 1)), process);
}

Handover::Shared Handover::exchange(const std::function<Descriptor()>& create_memory, milliseconds timeout) {
  try {
    return rank_ == 0 ? give(create_memory(), timeout) : take(timeout);
  } catch (const std::exception&) {
    socket_.reset();  // whoever waits for this rank is told by that
    throw;
  }
}

// All have connected and sent their message, so nobody is waited for. Others who connected are sent away.
std::vector<Descriptor> Handover::accept_all(Shared& shared) {
  const std::string secret = address_.substr(address_.find('/') + 1);
  std::vector<Descriptor> connections(static_cast<std::size_t>(size_));
  while (true) {
    Descriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) break;
    std::optional<Message> message = receive_message(connection.get(), milliseconds(0));
    if (!is_of_own_user(connection.get()) || !message || message->descriptors.size() != 1) continue;
    for (std::size_t rank = 1; rank < connections.size(); ++rank) {
      if (message->text != fmt::format("{} {}", rank, secret)) continue;
      connections[rank] = std::move(connection);
      shared.processes[rank] = std::move(message->descriptors.front());
      break;
    }
  }
  return connections;
}

Handover::Shared Handover::give(Descriptor memory, milliseconds timeout) {
  Shared shared{.memory = std::move(memory),
                .processes = std::vector<Descriptor>(static_cast<std::size_t>(size_))};
  shared.processes[0] = std::move(own_process_);
  const std::vector<Descriptor> connections = accept_all(shared);
  socket_.reset();
  std::vector<int> descriptors{shared.memory.get()};
  for (std::size_t rank = 0; rank < connections.size(); ++rank) {
    if (!shared.processes[rank]) throw lost(static_cast<int>(rank));
    descriptors.push_back(shared.processes[rank].get());
  }
  // One after the other: the kernel limits how many descriptors of a user are on their way.
  for (int rank = 1; rank < size_; ++rank) {
    const int connection = connections[static_cast<std::size_t>(rank)].get();
    for (std::size_t begin = 0; begin < descriptors.size(); begin += kMaxSentDescriptors) {
      const std::size_t count = std::min(kMaxSentDescriptors, descriptors.size() - begin);
      if (!send_message(connection, "descriptors", std::span(descriptors).subspan(begin, count)))
        throw lost(rank);
    }
    if (!receive_message(connection, timeout)) throw lost(rank);
  }
  return shared;
}

Handover::Shared Handover::take(milliseconds timeout) {
  const auto expected = static_cast<std::size_t>(size_) + 1;
  std::vector<Descriptor> descriptors;
  while (descriptors.size() < expected) {
    std::optional<Message> message = receive_message(socket_.get(), timeout);
    if (!message || message->descriptors.empty()) throw lost(0);
    std::ranges::move(message->descriptors, std::back_inserter(descriptors));
  }
  if (!send_message(socket_.get(), "taken")) throw lost(0);
  Shared shared{.memory = std::move(descriptors.front())};
  descriptors.erase(descriptors.begin());
  shared.processes = std::move(descriptors);
  return shared;
}

}  // namespace acc::detail
