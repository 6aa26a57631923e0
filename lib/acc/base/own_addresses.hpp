// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace acc {

/// The names and addresses of this machine.
struct OwnNames {
  std::string host_name = {};
  /// Numeric addresses of its network interfaces, with loopback; see sorted_addresses().
  std::vector<std::string> addresses = {};
};

/// An address of a network interface, numeric and without its zone, as getifaddrs(3) lists it.
struct InterfaceAddress {
  std::string interface = {};
  unsigned flags = 0;
  std::string address = {};
};

/// The addresses of interfaces that are up, without duplicates: first those that other machines are likely to
/// reach, IPv4 before IPv6. An interface that is down may have addresses that are not this machine's alone:
/// kube-ipvs0 has those of all services of a Kubernetes cluster, on each of its nodes.
std::vector<std::string> sorted_addresses(std::vector<InterfaceAddress> interfaces);

/// Queries the kernel, without DNS.
OwnNames own_names();

/// The name of this machine with its domain, as in `hostname -f`: the resolver's canonical name; the plain
/// name if it has none.
std::string full_host_name();

/// Whether `address`, which is numeric, is loopback.
bool is_loopback(const std::string& address);

/// Whether `host` is `localhost` or a loopback address. Looks nothing up.
bool names_loopback(const std::string& host);

/// The address of this machine from which the kernel's routes lead to `address`, which is numeric; empty if
/// none does. Sends nothing.
std::string address_towards(const std::string& address);

/// The addresses at which others can see it: all but loopback.
std::vector<std::string> addresses_for_others(const OwnNames& machine);

/// The address at which others most likely find it, if no route tells: one of `name_addresses`, to which its
/// name resolves, else the first that is not of one link alone. Empty if it has only loopback.
std::string likely_address(const OwnNames& machine, const std::vector<std::string>& name_addresses);

/// Whether `host` begins with the name of this machine and a dot. Another domain can have a machine of that
/// name, too.
bool begins_with_own_name(const std::string& host, const OwnNames& machine);

/// Whether `host`, a name or an address that resolves to `resolved` (empty: to nothing), is this machine.
/// Uses the forward look-up only, since reverse DNS is often wrong. A name that begins with this machine's
/// and resolves to another's address is this machine's if `full_name()` agrees: in a pod of Kubernetes, whose
/// address the resolver learns late.
bool names_this_machine(const std::string& host, const std::vector<std::string>& resolved,
                        const OwnNames& machine,
                        const std::function<std::string()>& full_name = full_host_name);

/// The result of a DNS lookup.
struct HostLookup {
  /// Numeric addresses; empty if there is none, for the reason in `error`.
  std::vector<std::string> addresses = {};
  std::string error = {};
};

/// Queries the system's resolver and waits. A numeric address resolves to itself.
HostLookup look_up(const std::string& host);

/// Those of `addresses` that are this machine's, without duplicates. `0.0.0.0` and `::` become loopback, to
/// which a connection to them goes.
std::vector<std::string> own_among(const std::vector<std::string>& addresses, const OwnNames& machine);

/// The addresses that a store listens on which others reach as `host`: those of this machine that the name
/// resolves to; all if there is none (NAT), or only loopback although it is a name (as in Debian's
/// /etc/hosts).
std::vector<std::string> addresses_to_listen_on(const std::string& host,
                                                const std::vector<std::string>& resolved,
                                                const OwnNames& machine);

}  // namespace acc
