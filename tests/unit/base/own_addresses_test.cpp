// SPDX-License-Identifier: Apache-2.0
#include "acc/base/own_addresses.hpp"

#include <net/if.h>

#include <algorithm>

#include "support/catch.hpp"

namespace own_addresses_test {

using namespace acc;
using Addresses = std::vector<std::string>;

namespace {

const OwnNames kOwn = {.host_name = "node1", .addresses = {"127.0.0.1", "::1", "10.0.0.1", "fe80::1"}};

}  // namespace

TEST_CASE("own_addresses: this machine is known by its names, its addresses and what they resolve to",
          "[base]") {
  for (const std::string host :
       {"", "localhost", "127.0.0.1", "127.0.1.1", "::1", "node1", "node1.lab.org", "10.0.0.1", "fe80::1"}) {
    CAPTURE(host);
    CHECK(names_this_machine(host, {}, kOwn));
  }
  CHECK(names_this_machine("master", {"10.0.0.9", "10.0.0.1"}, kOwn));
  CHECK(names_this_machine("master", {"127.0.1.1"}, kOwn));
}

TEST_CASE("own_addresses: another machine is not this one", "[base]") {
  CHECK_FALSE(names_this_machine("node10", {"10.0.0.10"}, kOwn));
  CHECK_FALSE(names_this_machine("10.0.0.2", {"10.0.0.2"}, kOwn));
  CHECK_FALSE(names_this_machine("nowhere", {}, kOwn));
}

TEST_CASE("own_addresses: a name that begins with this machine's and resolves to another is another's",
          "[base]") {
  const auto begins_alike = [](const std::string& host, const std::string& full_name) {
    return names_this_machine(host, {"10.0.0.2"}, kOwn, [&] { return full_name; });
  };
  CHECK_FALSE(begins_alike("node1.siteb", "node1.sitea"));
  CHECK_FALSE(begins_alike("node1.siteb", "node1"));
  CHECK_FALSE(begins_alike("node1.site", "node1.sites"));
  // A pod, whose address the resolver does not have yet.
  CHECK(begins_alike("node1.train", "node1.train.default.svc.cluster.local"));
  CHECK(begins_alike("node1.train.default.svc.cluster.local", "node1.train.default.svc.cluster.local"));
  CHECK(begins_alike("node1.train.default.svc.cluster.local.", "node1.train.default.svc.cluster.local"));
  CHECK(names_this_machine("node1.siteb", {"10.0.0.2", "10.0.0.1"}, kOwn, [] { return "node1"; }));
}

TEST_CASE("own_addresses: those that others reach are first, and none is of an interface that is down",
          "[base]") {
  constexpr unsigned kUp = IFF_UP | IFF_RUNNING;
  CHECK(sorted_addresses({{"lo", kUp | IFF_LOOPBACK, "127.0.0.1"},
                          {"lo", kUp | IFF_LOOPBACK, "10.9.0.1"},
                          {"usb0", kUp, "169.254.3.1"},
                          {"docker0", kUp, "172.17.0.1"},
                          {"eth0", IFF_UP, "192.168.0.1"},
                          {"kube-ipvs0", 0, "10.96.0.1"},
                          {"eth1", kUp, "fe80::1"},
                          {"eth1", kUp, "fd00::1"},
                          {"eth1", kUp, "10.0.0.1"},
                          {"eth2", kUp, "10.0.0.1"}}) == Addresses{"10.0.0.1", "fd00::1", "10.9.0.1",
                                                                   "172.17.0.1", "192.168.0.1", "169.254.3.1",
                                                                   "fe80::1", "127.0.0.1"});
}

TEST_CASE("own_addresses: others find a machine where its name says, else at its first address", "[base]") {
  const OwnNames machine = {.addresses = {"10.0.0.1", "10.1.0.1", "127.0.0.1"}};
  CHECK(likely_address(machine, {"127.0.1.1", "10.1.0.1"}) == "10.1.0.1");
  CHECK(likely_address(machine, {"127.0.1.1", "10.2.0.1"}) == "10.0.0.1");
  CHECK(likely_address({.addresses = {"fe80::1", "169.254.3.1", "127.0.0.1"}}, {"127.0.1.1"}).empty());
}

TEST_CASE("own_addresses: a store listens on the addresses of its name", "[base]") {
  CHECK(addresses_to_listen_on("node1", {"10.0.0.1"}, kOwn) == Addresses{"10.0.0.1"});
  CHECK(addresses_to_listen_on("10.0.0.1", {}, kOwn) == Addresses{"10.0.0.1"});
  CHECK(addresses_to_listen_on("localhost", {"::1", "127.0.0.1"}, kOwn) == Addresses{"::1", "127.0.0.1"});
  CHECK(addresses_to_listen_on("localhost", {}, kOwn) == Addresses{"127.0.0.1"});
  // The kernel lists one loopback address of IPv4, but has all of them.
  CHECK(addresses_to_listen_on("127.0.0.2", {"127.0.0.2"}, kOwn) == Addresses{"127.0.0.2"});
  CHECK(addresses_to_listen_on("127.0.0.2", {}, kOwn) == Addresses{"127.0.0.2"});
}

TEST_CASE("own_addresses: a name without addresses of this machine means all addresses", "[base]") {
  CHECK(addresses_to_listen_on("node1", {"127.0.1.1"}, kOwn) == Addresses{"::"});
  CHECK(addresses_to_listen_on("service", {"172.30.0.1"}, kOwn) == Addresses{"::"});
}

TEST_CASE("own_addresses: includes loopback", "[base]") {
  const OwnNames names = own_names();
  CHECK_FALSE(names.host_name.empty());
  CHECK(std::ranges::find(names.addresses, "127.0.0.1") != names.addresses.end());
}

TEST_CASE("own_addresses: all of 127.0.0.0/8 and ::1 are loopback, a name is not", "[base]") {
  for (const std::string address : {"127.0.0.1", "127.1.2.3", "::1"}) {
    CAPTURE(address);
    CHECK(is_loopback(address));
  }
  for (const std::string address : {"10.0.0.1", "fe80::1", "127.example.org", "localhost", ""}) {
    CAPTURE(address);
    CHECK_FALSE(is_loopback(address));
  }
  CHECK(acc::names_loopback("localhost"));
  CHECK(acc::names_loopback("::1"));
  CHECK_FALSE(acc::names_loopback("10.0.0.1"));
}

TEST_CASE("own_addresses: the route to an address begins at one of this machine's", "[base]") {
  CHECK(address_towards("127.0.0.1") == "127.0.0.1");
  CHECK(address_towards("localhost").empty());
  for (const std::string& address : addresses_for_others(own_names())) {
    const std::string towards = address_towards(address);
    CAPTURE(address, towards);
    CHECK((towards.empty() || towards == address));
  }
}

TEST_CASE("own_addresses: loopback is not for other machines", "[base]") {
  CHECK(addresses_for_others({.addresses = {"127.0.0.1", "10.0.0.1", "::1", "fd00::1"}}) ==
        std::vector<std::string>{"10.0.0.1", "fd00::1"});
}

TEST_CASE("own_addresses: selects those of this machine; wildcards become loopback", "[base]") {
  CHECK(own_among({"10.0.0.2", "10.0.0.1", "10.0.0.1"}, kOwn) == Addresses{"10.0.0.1"});
  CHECK(own_among({"127.0.1.1", "::1"}, kOwn) == Addresses{"127.0.1.1", "::1"});
  CHECK(own_among({"::ffff:10.0.0.1"}, kOwn) == Addresses{"10.0.0.1"});
  CHECK(own_among({"0.0.0.0", "::"}, kOwn) == Addresses{"127.0.0.1", "::1"});
  CHECK(own_among({"10.0.0.2", "fd00::1", "localhost"}, kOwn).empty());
  CHECK(own_among({"fe80::1%lo"}, kOwn) == Addresses{"fe80::1%lo"});
  // A machine without IPv6.
  CHECK(own_among({"::1"}, {.addresses = {"127.0.0.1"}}).empty());
}

TEST_CASE("own_addresses: a name is resolved, an address stays", "[base]") {
  CHECK(look_up("127.0.1.1").addresses == Addresses{"127.0.1.1"});
  CHECK(look_up("::1").addresses == Addresses{"::1"});
  CHECK_FALSE(look_up("localhost").addresses.empty());
  const HostLookup nothing = look_up("no such name");
  CHECK(nothing.addresses.empty());
  CHECK_FALSE(nothing.error.empty());
}

}  // namespace own_addresses_test
