// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/address.hpp>
#include <set>
#include <string>

namespace acc {

/// Whose connections are taken. Until the first address is allowed, everybody's.
class AddressFilter {
 public:
  /// From now on only allowed addresses and this machine are admitted. Throws Error{usage} for what is no v4
  /// or v6 address in numbers.
  void allow(const std::string& address);

  /// Everybody's again.
  void allow_all() { allowed_.clear(); }

  /// `peer` is the other end of a connection that came to our address `own`; both may be v4 in v6 clothes.
  bool admits(const boost::asio::ip::address& peer, const boost::asio::ip::address& own) const;

 private:
  std::set<boost::asio::ip::address> allowed_ = {};
};

}  // namespace acc
