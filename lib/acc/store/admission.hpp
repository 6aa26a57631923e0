// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "acc/store/network.hpp"

namespace acc::launcher {

/// The address without the zone of a v6 address, and a v4 address that a listener on `::` sees as
/// ::ffff:a.b.c.d as such.
net::ip::address plain_address(const net::ip::address& address);

/// The clients that a store accepts.
struct StoreClients {
  /// Numeric addresses of the job's nodes, IPv4 or IPv6.
  std::vector<std::string> nodes = {};
  /// How connections from other addresses are treated; those of this machine are the job's.
  enum class Others {
    members,    ///< members: the nodes' addresses are not known
    strangers,  ///< perhaps members: served with limited memory
    refused,    ///< connections are closed
  } others = Others::members;
};

/// The class of a connection by its addresses.
enum class Standing {
  member,    ///< a node of the job
  local,     ///< this machine
  stranger,  ///< perhaps a node of the job
  refused,
};

/// Decides which connections are accepted.
class Admission {
 public:
  /// `local_addresses`: the numeric addresses of this machine; loopback is implied.
  explicit Admission(const std::vector<std::string>& local_addresses = {});

  /// Replaces the accepted clients. Throws Error{usage} for an invalid numeric address.
  void serve(const StoreClients& clients);

  /// `peer` is the remote address of a connection to our address `local`; both may be IPv4-mapped IPv6
  /// addresses.
  Standing standing(const net::ip::address& peer, const net::ip::address& local) const;

 private:
  std::set<net::ip::address> local_addresses_ = {};
  std::set<net::ip::address> nodes_ = {};
  StoreClients::Others others_ = StoreClients::Others::members;
};

/// Limits the memory of connections from outside of the job: incomplete requests, waits, replies that are not
/// read. Together they stay below a limit, so that they cannot exhaust this process.
class StrangerMemory {
 public:
  using Id = std::uint64_t;

  explicit StrangerMemory(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Notes that `id` holds `bytes`. Returns the connections that must be closed so that the rest is within
  /// the limit, and forgets them. The first to be closed is the connection that has held much memory for
  /// longest, since legitimate requests are large only briefly; if none holds much, the one that holds most.
  std::vector<Id> hold(Id id, std::size_t bytes);

  /// `id` was closed.
  void release(Id id);

  std::size_t total() const { return total_; }

 private:
  struct Holding {
    std::size_t bytes = 0;
    std::uint64_t since = 0;  // when it began to hold much; 0 if it does not
  };

  Id next_to_close() const;

  std::size_t max_bytes_;
  std::size_t total_ = 0;
  std::uint64_t now_ = 0;
  std::unordered_map<Id, Holding> holdings_ = {};
};

}  // namespace acc::launcher
