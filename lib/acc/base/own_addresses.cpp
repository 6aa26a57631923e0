// SPDX-License-Identifier: Apache-2.0
#include "acc/base/own_addresses.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/udp.hpp>
#include <cstring>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "acc/base/files.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

namespace ip = boost::asio::ip;

std::string number_of(const sockaddr* address, bool with_scope) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    sockaddr_in v4 = {};
    std::memcpy(&v4, address, sizeof v4);
    return ip::address_v4(ntohl(v4.sin_addr.s_addr)).to_string();
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6 = {};
    std::memcpy(&v6, address, sizeof v6);
    ip::address_v6::bytes_type bytes = {};
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return ip::address_v6(bytes, with_scope ? v6.sin6_scope_id : 0).to_string();
  }
  return {};
}

// Unmaps v4-mapped addresses; keeps the zone.
ip::address plain(const ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return ip::make_address_v4(ip::v4_mapped, address.to_v6());
}

std::string unscoped(const ip::address& address) {
  if (!address.is_v6()) return address.to_string();
  ip::address_v6 v6 = address.to_v6();
  v6.scope_id(0);
  return v6.to_string();
}

bool is_number(const std::string& text) {
  boost::system::error_code error;
  ip::make_address(text, error);
  return !error;
}

// Interfaces for containers and virtual machines of this machine, which no other machine reaches.
bool is_for_guests(const std::string& interface) {
  constexpr std::array<const char*, 10> kPrefixes = {"br-", "cali",  "cni",    "docker", "flannel",
                                                     "lxc", "lxdbr", "podman", "veth",   "virbr"};
  return std::ranges::any_of(kPrefixes, [&](const char* prefix) { return interface.starts_with(prefix); });
}

bool is_link_local(const ip::address& address) {
  if (address.is_v6()) return address.to_v6().is_link_local();
  constexpr unsigned kPrefix = 0xa9feU;  // 169.254.0.0/16
  return address.to_v4().to_uint() >> 16U == kPrefix;
}

// Lower is better.
int preference(const InterfaceAddress& one) {
  constexpr int kVersion6 = 1;
  constexpr int kLocalInterface = 2;
  constexpr int kLinkLocal = 4;
  constexpr int kLoopback = 5;
  boost::system::error_code error;
  const ip::address address = ip::make_address(one.address, error);
  if (error || address.is_loopback()) return kLoopback;
  if (is_link_local(address)) return kLinkLocal;
  const bool reaches_others =
      (one.flags & (IFF_RUNNING | IFF_LOOPBACK)) == IFF_RUNNING && !is_for_guests(one.interface);
  return (reaches_others ? 0 : kLocalInterface) + (address.is_v6() ? kVersion6 : 0);
}

}  // namespace

std::vector<std::string> sorted_addresses(std::vector<InterfaceAddress> interfaces) {
  std::erase_if(interfaces, [](const InterfaceAddress& one) { return (one.flags & IFF_UP) == 0; });
  std::ranges::stable_sort(interfaces, {}, preference);
  std::vector<std::string> addresses;
  std::set<std::string> known;  // there can be thousands
  for (const InterfaceAddress& one : interfaces) {
    if (known.insert(one.address).second) addresses.push_back(one.address);
  }
  return addresses;
}

OwnNames own_names() {
  OwnNames names;
  names.host_name = host_name();
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return names;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<InterfaceAddress> interfaces;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    std::string number = number_of(one->ifa_addr, false);
    if (!number.empty()) interfaces.push_back({one->ifa_name, one->ifa_flags, std::move(number)});
  }
  names.addresses = sorted_addresses(std::move(interfaces));
  return names;
}

std::string full_host_name() {
  std::string name = host_name();
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_CANONNAME;
  addrinfo* list = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) return name;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  return list->ai_canonname == nullptr ? name : list->ai_canonname;
}

bool is_loopback(const std::string& address) {
  boost::system::error_code error;
  const ip::address number = ip::make_address(address, error);
  return !error && number.is_loopback();
}

bool names_loopback(const std::string& host) {
  return host == "localhost" || is_loopback(host);
}

std::string address_towards(const std::string& address) {
  constexpr std::uint16_t kAnyPort = 9;
  boost::system::error_code error;
  const ip::udp::endpoint to(ip::make_address(address, error), kAnyPort);
  if (error) return {};
  const Descriptor socket(::socket(to.protocol().family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ip::udp::endpoint source;
  auto size = static_cast<socklen_t>(source.capacity());
  const bool has_route = ::connect(socket.get(), to.data(), static_cast<socklen_t>(to.size())) == 0 &&
                         ::getsockname(socket.get(), source.data(), &size) == 0;
  return has_route ? source.address().to_string() : std::string();
}

std::vector<std::string> addresses_for_others(const OwnNames& machine) {
  std::vector<std::string> others;
  std::ranges::remove_copy_if(machine.addresses, std::back_inserter(others), is_loopback);
  return others;
}

std::string likely_address(const OwnNames& machine, const std::vector<std::string>& name_addresses) {
  std::vector<std::string> candidates = addresses_for_others(machine);
  std::erase_if(candidates, [](const std::string& one) {
    boost::system::error_code error;
    const ip::address address = ip::make_address(one, error);
    return !error && is_link_local(address);
  });
  const auto match =
      std::ranges::find_if(name_addresses, [&](const std::string& one) { return contains(candidates, one); });
  if (match != name_addresses.end()) return *match;
  return candidates.empty() ? "" : candidates.front();
}

bool begins_with_own_name(const std::string& host, const OwnNames& machine) {
  return !machine.host_name.empty() && host.starts_with(machine.host_name + ".");
}

bool names_this_machine(const std::string& host, const std::vector<std::string>& resolved,
                        const OwnNames& machine, const std::function<std::string()>& full_name) {
  if (host.empty() || names_loopback(host) || host == machine.host_name) return true;
  const auto is_own = [&](const std::string& one) {
    return is_loopback(one) || contains(machine.addresses, one);
  };
  if (is_own(host) || std::ranges::any_of(resolved, is_own)) return true;
  if (!begins_with_own_name(host, machine)) return false;
  const std::string whole_name = host.ends_with('.') ? host : host + ".";
  return resolved.empty() || (full_name() + ".").starts_with(whole_name);
}

HostLookup look_up(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (failed != 0) return {.error = ::gai_strerror(failed)};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  HostLookup lookup;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    const std::string number = number_of(one->ai_addr, true);
    if (!number.empty() && !contains(lookup.addresses, number)) lookup.addresses.push_back(number);
  }
  return lookup;
}

std::vector<std::string> own_among(const std::vector<std::string>& addresses, const OwnNames& machine) {
  std::vector<std::string> matches;
  for (const std::string& text : addresses) {
    boost::system::error_code error;
    ip::address address = plain(ip::make_address(text, error));
    if (error) continue;
    if (address.is_unspecified()) {
      address = address.is_v4() ? ip::address(ip::address_v4::loopback()) : ip::address_v6::loopback();
    }
    // The kernel lists one address of 127.0.0.0/8, but all of them are this machine.
    const bool is_own =
        (address.is_v4() && address.is_loopback()) || contains(machine.addresses, unscoped(address));
    if (is_own && !contains(matches, address.to_string())) matches.push_back(address.to_string());
  }
  return matches;
}

std::vector<std::string> addresses_to_listen_on(const std::string& host,
                                                const std::vector<std::string>& resolved,
                                                const OwnNames& machine) {
  const bool local_name = host.empty() || host == "localhost" || is_loopback(host);
  std::vector<std::string> chosen = own_among(resolved, machine);
  std::erase_if(chosen, [&](const std::string& one) { return is_loopback(one) != local_name; });
  if (chosen.empty() && is_number(host)) chosen = own_among({host}, machine);
  if (chosen.empty() && local_name) chosen.emplace_back("127.0.0.1");
  if (chosen.empty()) chosen.emplace_back("::");
  return chosen;
}

}  // namespace acc
