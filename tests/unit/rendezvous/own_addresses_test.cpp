// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/own_addresses.hpp"

#include <algorithm>

#include "support/catch.hpp"

using namespace acc;
using Addresses = std::vector<std::string>;

namespace {

const OwnNames kOwn = {.host_name = "node1", .addresses = {"127.0.0.1", "::1", "10.0.0.1", "fe80::1"}};

}  // namespace

TEST_CASE("own_addresses: this machine is known by its names, its addresses and what they resolve to",
          "[rendezvous]") {
  for (const std::string host :
       {"", "localhost", "127.0.0.1", "127.0.1.1", "::1", "node1", "node1.lab.org", "10.0.0.1", "fe80::1"}) {
    CAPTURE(host);
    CHECK(names_this_machine(host, {}, kOwn));
  }
  CHECK(names_this_machine("master", {"10.0.0.9", "10.0.0.1"}, kOwn));
  CHECK(names_this_machine("master", {"127.0.1.1"}, kOwn));
}

TEST_CASE("own_addresses: another machine is not this one", "[rendezvous]") {
  CHECK_FALSE(names_this_machine("node10", {"10.0.0.10"}, kOwn));
  CHECK_FALSE(names_this_machine("10.0.0.2", {"10.0.0.2"}, kOwn));
  CHECK_FALSE(names_this_machine("nowhere", {}, kOwn));
}

TEST_CASE("own_addresses: a store listens where its name leads", "[rendezvous]") {
  CHECK(addresses_to_listen_on("node1", {"10.0.0.1"}, kOwn) == Addresses{"10.0.0.1"});
  CHECK(addresses_to_listen_on("10.0.0.1", {}, kOwn) == Addresses{"10.0.0.1"});
  CHECK(addresses_to_listen_on("localhost", {"::1", "127.0.0.1"}, kOwn) == Addresses{"::1", "127.0.0.1"});
  CHECK(addresses_to_listen_on("localhost", {}, kOwn) == Addresses{"127.0.0.1"});
}

TEST_CASE("own_addresses: a name that leads nowhere here leads everywhere", "[rendezvous]") {
  CHECK(addresses_to_listen_on("node1", {"127.0.1.1"}, kOwn) == Addresses{"::"});
  CHECK(addresses_to_listen_on("service", {"172.30.0.1"}, kOwn) == Addresses{"::"});
}

TEST_CASE("own_addresses: the kernel knows at least loopback", "[rendezvous]") {
  const OwnNames own = own_names();
  CHECK_FALSE(own.host_name.empty());
  CHECK(std::ranges::find(own.addresses, "127.0.0.1") != own.addresses.end());
}

TEST_CASE("own_addresses: loopback is for nobody else", "[rendezvous]") {
  CHECK(addresses_for_others({.addresses = {"127.0.0.1", "10.0.0.1", "::1", "fd00::1"}}) ==
        std::vector<std::string>{"10.0.0.1", "fd00::1"});
}
