// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/own_addresses.hpp"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <cstring>
#include <iterator>
#include <memory>

namespace acc {
namespace {

namespace ip = boost::asio::ip;

std::string number_of(const sockaddr* address) {
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
    return ip::address_v6(bytes).to_string();
  }
  return {};
}

bool is_loopback(const std::string& text) {
  boost::system::error_code error;
  const ip::address address = ip::make_address(text, error);
  return !error && address.is_loopback();
}

bool is_number(const std::string& text) {
  boost::system::error_code error;
  ip::make_address(text, error);
  return !error;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

}  // namespace

OwnNames own_names() {
  OwnNames own;
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) == 0) own.host_name = name.data();
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return own;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const std::string number = number_of(one->ifa_addr);
    if (!number.empty() && !contains(own.addresses, number)) own.addresses.push_back(number);
  }
  return own;
}

std::vector<std::string> addresses_for_others(const OwnNames& own) {
  std::vector<std::string> others;
  std::ranges::remove_copy_if(own.addresses, std::back_inserter(others), is_loopback);
  return others;
}

bool names_this_machine(const std::string& host, const std::vector<std::string>& resolved,
                        const OwnNames& own) {
  if (host.empty() || host == "localhost" || is_loopback(host)) return true;
  if (contains(own.addresses, host)) return true;
  if (!own.host_name.empty() && (host == own.host_name || host.starts_with(own.host_name + "."))) return true;
  return std::ranges::any_of(
      resolved, [&](const std::string& one) { return is_loopback(one) || contains(own.addresses, one); });
}

std::vector<std::string> addresses_to_listen_on(const std::string& host,
                                                const std::vector<std::string>& resolved,
                                                const OwnNames& own) {
  const bool local_name = host.empty() || host == "localhost" || is_loopback(host);
  std::vector<std::string> chosen;
  for (const std::string& one : resolved) {
    if (contains(own.addresses, one) && is_loopback(one) == local_name && !contains(chosen, one))
      chosen.push_back(one);
  }
  if (chosen.empty() && is_number(host) && contains(own.addresses, host)) chosen.push_back(host);
  if (chosen.empty() && local_name) chosen.emplace_back("127.0.0.1");
  if (chosen.empty()) chosen.emplace_back("::");
  return chosen;
}

}  // namespace acc
