// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/address.hpp>
#include <set>
#include <string>
#include <vector>

namespace acc::launcher {

/// Whose connections a store takes.
struct StoreClients {
  /// Addresses of the job's nodes, v4 or v6 in numbers.
  std::vector<std::string> nodes = {};
  /// What connections from elsewhere are; this machine's own are the job's.
  enum class Others {
    members,    ///< of the job: its nodes' addresses are not known
    strangers,  ///< served with little memory: they may be the job's or not
    refused,    ///< nobody's
  } others = Others::members;
};

/// Who a connection is from, as far as addresses tell.
enum class Standing {
  member,    ///< a node of the job
  local,     ///< this machine
  stranger,  ///< perhaps a node of the job
  refused,
};

/// Says who is served.
class Admission {
 public:
  /// `own`: this machine's addresses, in numbers; loopback is known.
  explicit Admission(const std::vector<std::string>& own = {});

  /// In place of what was said before. Throws Error{usage} for what is no address in numbers.
  void serve(const StoreClients& clients);

  /// `peer` is the other end of a connection that came to our address `own`; both may be v4 in v6 clothes.
  Standing standing(const boost::asio::ip::address& peer, const boost::asio::ip::address& own) const;

 private:
  std::set<boost::asio::ip::address> own_ = {};
  std::set<boost::asio::ip::address> nodes_ = {};
  StoreClients::Others others_ = StoreClients::Others::members;
};

}  // namespace acc::launcher
