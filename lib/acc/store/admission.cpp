// SPDX-License-Identifier: Apache-2.0
#include "acc/store/admission.hpp"

#include <boost/system/error_code.hpp>

#include "acc/base/error.hpp"

namespace acc::launcher {
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

std::set<ip::address> parsed(const std::vector<std::string>& texts) {
  std::set<ip::address> addresses;
  for (const std::string& text : texts) {
    boost::system::error_code error;
    const ip::address address = ip::make_address(text, error);
    if (error) throw Error({.what = "is not an address in numbers", .where = "'" + text + "'"});
    addresses.insert(plain(address));
  }
  return addresses;
}

}  // namespace

Admission::Admission(const std::vector<std::string>& own) : own_(parsed(own)) {}

void Admission::serve(const StoreClients& clients) {
  nodes_ = parsed(clients.nodes);
  others_ = clients.others;
}

Standing Admission::standing(const ip::address& peer, const ip::address& own) const {
  const ip::address from = plain(peer);
  if (from.is_loopback() || from == plain(own) || own_.contains(from)) return Standing::local;
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

}  // namespace acc::launcher
