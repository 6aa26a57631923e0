// SPDX-License-Identifier: Apache-2.0
#include "acc/store/admission.hpp"

#include <algorithm>
#include <boost/system/error_code.hpp>
#include <tuple>

#include "acc/base/error.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {
namespace {

namespace ip = net::ip;

std::set<ip::address> parsed(const std::vector<std::string>& texts) {
  std::set<ip::address> addresses;
  for (const std::string& text : texts) {
    boost::system::error_code error;
    const ip::address address = ip::make_address(text, error);
    if (error) throw Error({.what = "is not a numeric address", .where = "'" + text + "'"});
    addresses.insert(plain_address(address));
  }
  return addresses;
}

}  // namespace

// The zone only names an interface.
ip::address plain_address(const ip::address& address) {
  if (!address.is_v6()) return address;
  ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, v6);
  v6.scope_id(0);
  return v6;
}

Admission::Admission(const std::vector<std::string>& local_addresses)
    : local_addresses_(parsed(local_addresses)) {}

void Admission::serve(const StoreClients& clients) {
  nodes_ = parsed(clients.nodes);
  others_ = clients.others;
}

Standing Admission::standing(const ip::address& peer, const ip::address& local) const {
  const ip::address from = plain_address(peer);
  if (from.is_loopback() || from == plain_address(local) || local_addresses_.contains(from))
    return Standing::local;
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

}  // namespace acc::launcher
