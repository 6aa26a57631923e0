// SPDX-License-Identifier: Apache-2.0
#include "acc/store/peer_user.hpp"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>

#include "acc/base/files.hpp"

namespace acc::launcher {
namespace {

namespace ip = net::ip;

struct Query {
  nlmsghdr header = {};
  inet_diag_req_v2 request = {};
};

void put(const ip::address& address, std::span<__be32, 4> field) {
  if (address.is_v4()) {
    const auto bytes = address.to_v4().to_bytes();
    std::memcpy(field.data(), bytes.data(), bytes.size());
  } else {
    const auto bytes = address.to_v6().to_bytes();
    std::memcpy(field.data(), bytes.data(), bytes.size());
  }
}

// Queries the socket of the other side, whose source is our peer. The kernel finds v4 sockets by mapped
// addresses, too.
Query query_for(const ip::tcp::endpoint& peer, const ip::tcp::endpoint& local) {
  Query query;
  query.header = {.nlmsg_len = sizeof query,
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST,
                  .nlmsg_seq = 1,
                  .nlmsg_pid = 0};
  query.request.sdiag_family = peer.address().is_v4() ? AF_INET : AF_INET6;
  query.request.sdiag_protocol = IPPROTO_TCP;
  query.request.idiag_states = ~0U;
  query.request.id.idiag_sport = htons(peer.port());
  query.request.id.idiag_dport = htons(local.port());
  put(peer.address(), query.request.id.idiag_src);
  put(local.address(), query.request.id.idiag_dst);
  query.request.id.idiag_cookie[0] = query.request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return query;
}

// What the kernel says of the socket at the other end; absent if it knows none.
std::optional<inet_diag_msg> ask_kernel(const ip::tcp::socket& socket) {
  boost::system::error_code error;
  const auto peer = socket.remote_endpoint(error);
  if (error) return std::nullopt;
  const auto local = socket.local_endpoint(error);
  if (error) return std::nullopt;
  const Descriptor netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink) return std::nullopt;
  const Query query = query_for(peer, local);
  if (::send(netlink.get(), &query, sizeof query, 0) != static_cast<ssize_t>(sizeof query))
    return std::nullopt;
  // The kernel answers before send() returns.
  alignas(nlmsghdr) std::array<char, 4096> buffer = {};
  const ssize_t size = ::recv(netlink.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  nlmsghdr header = {};
  inet_diag_msg answer = {};
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof answer))) return std::nullopt;
  std::memcpy(&header, buffer.data(), sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  std::memcpy(&answer, buffer.data() + NLMSG_HDRLEN, sizeof answer);
  return answer;
}

// A socket that its process has closed has no inode, and user 0 whoever had it. Where there is none any more,
// the kernel takes one that listens at that port.
bool has_user(const inet_diag_msg& answer) {
  return answer.idiag_inode != 0 && answer.idiag_state != TCP_LISTEN;
}

bool is_connected(const ip::tcp::socket& socket) {
  boost::system::error_code error;
  socket.remote_endpoint(error);
  return !error;
}

}  // namespace

std::optional<uid_t> user_of_peer(const ip::tcp::socket& socket) {
  const auto answer = ask_kernel(socket);
  return answer && has_user(*answer) ? std::optional<uid_t>(answer->idiag_uid) : std::nullopt;
}

bool may_be_own_user(const ip::tcp::socket& socket) {
  const auto answer = ask_kernel(socket);
  // Of a connection that was reset the kernel knows nothing any more.
  if (!answer) return is_connected(socket);
  return has_user(*answer) && (answer->idiag_uid == 0 || answer->idiag_uid == ::geteuid());
}

}  // namespace acc::launcher
