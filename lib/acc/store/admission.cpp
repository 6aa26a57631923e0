// SPDX-License-Identifier: Apache-2.0
#include "acc/store/admission.hpp"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/system/error_code.hpp>
#include <cstring>
#include <span>
#include <tuple>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"

namespace acc::launcher {
namespace {

namespace ip = boost::asio::ip;

// A listener on `::` sees v4 peers as ::ffff:a.b.c.d. The zone of a v6 address only names an interface.
ip::address plain(const ip::address& address) {
  if (!address.is_v6()) return address;
  ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, v6);
  v6.scope_id(0);
  return v6;
}

std::set<ip::address> parsed(const std::vector<std::string>& texts) {
  std::set<ip::address> addresses;
  for (const std::string& text : texts) {
    boost::system::error_code error;
    const ip::address address = ip::make_address(text, error);
    if (error) throw Error({.what = "is not a numeric address", .where = "'" + text + "'"});
    addresses.insert(plain(address));
  }
  return addresses;
}

}  // namespace

Admission::Admission(const std::vector<std::string>& local_addresses)
    : local_addresses_(parsed(local_addresses)) {}

void Admission::serve(const StoreClients& clients) {
  nodes_ = parsed(clients.nodes);
  others_ = clients.others;
}

Standing Admission::standing(const ip::address& peer, const ip::address& local) const {
  const ip::address from = plain(peer);
  if (from.is_loopback() || from == plain(local) || local_addresses_.contains(from)) return Standing::local;
  if (nodes_.contains(from)) return Standing::member;
  switch (others_) {
    case StoreClients::Others::members:
      return Standing::member;
    case StoreClients::Others::strangers:
      return Standing::stranger;
    case StoreClients::Others::refused:
      break;
  }
  return Standing::refused;
}

namespace {

// More than the wait of an agent takes.
constexpr std::size_t kLargeHolding = std::size_t{16} << 10U;

}  // namespace

std::vector<StrangerMemory::Id> StrangerMemory::hold(Id id, std::size_t bytes) {
  if (bytes == 0) {
    release(id);
    return {};
  }
  Holding& holding = holdings_[id];
  total_ += bytes - holding.bytes;
  holding.bytes = bytes;
  if (bytes <= kLargeHolding) {
    holding.since = 0;
  } else if (holding.since == 0) {
    holding.since = ++now_;
  }
  std::vector<Id> evicted;
  while (total_ > max_bytes_) {
    evicted.push_back(next_to_close());
    release(evicted.back());
  }
  return evicted;
}

void StrangerMemory::release(Id id) {
  const auto node = holdings_.extract(id);
  if (node) total_ -= node.mapped().bytes;
}

StrangerMemory::Id StrangerMemory::next_to_close() const {
  const auto closes_before = [](const auto& first, const auto& second) {
    const auto rank = [](const Holding& holding) {
      const bool much = holding.since > 0;
      return std::tuple(!much, much ? holding.since : 0, SIZE_MAX - holding.bytes);
    };
    return rank(first.second) < rank(second.second);
  };
  return std::ranges::min_element(holdings_, closes_before)->first;
}

namespace {

namespace ip = boost::asio::ip;

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

}  // namespace

std::optional<uid_t> user_of_peer(const ip::tcp::socket& socket) {
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
  return answer.idiag_uid;
}

bool may_be_own_user(const ip::tcp::socket& socket) {
  const auto user = user_of_peer(socket);
  return !user || *user == 0 || *user == ::geteuid();
}

}  // namespace acc::launcher
