// SPDX-License-Identifier: Apache-2.0
#include "acc/store/address_filter.hpp"

#include <boost/system/error_code.hpp>

#include "acc/base/error.hpp"

namespace acc {
namespace {

namespace ip = boost::asio::ip;

// A listener on `::` sees v4 peers as ::ffff:a.b.c.d, and a zone says only through which interface.
ip::address plain(const ip::address& address) {
  if (!address.is_v6()) return address;
  ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, v6);
  v6.scope_id(0);
  return v6;
}

}  // namespace

void AddressFilter::allow(const std::string& address) {
  boost::system::error_code error;
  const ip::address parsed = ip::make_address(address, error);
  if (error) throw Error({.what = "is not an address in numbers", .where = "'" + address + "'"});
  allowed_.insert(plain(parsed));
}

bool AddressFilter::admits(const ip::address& peer, const ip::address& own) const {
  const ip::address from = plain(peer);
  return allowed_.empty() || from.is_loopback() || from == plain(own) || allowed_.contains(from);
}

}  // namespace acc
