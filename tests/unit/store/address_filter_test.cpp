// SPDX-License-Identifier: Apache-2.0
#include "acc/store/address_filter.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::AddressFilter;

namespace {

bool admits(const AddressFilter& filter, const std::string& peer, const std::string& own = "10.0.0.1") {
  return filter.admits(boost::asio::ip::make_address(peer), boost::asio::ip::make_address(own));
}

}  // namespace

TEST_CASE("address filter: everybody is admitted until somebody is allowed", "[store]") {
  AddressFilter filter;
  CHECK(admits(filter, "10.9.9.9"));
  filter.allow("10.0.0.2");
  CHECK(admits(filter, "10.0.0.2"));
  CHECK_FALSE(admits(filter, "10.9.9.9"));
}

TEST_CASE("address filter: everybody is admitted again when nobody is singled out any more", "[store]") {
  AddressFilter filter;
  filter.allow("10.0.0.2");
  filter.allow_all();
  CHECK(admits(filter, "10.9.9.9"));
}

TEST_CASE("address filter: this machine is always admitted", "[store]") {
  AddressFilter filter;
  filter.allow("10.0.0.2");
  CHECK(admits(filter, "127.0.0.1"));
  CHECK(admits(filter, "127.0.0.7"));
  CHECK(admits(filter, "::1", "::1"));
  CHECK(admits(filter, "10.0.0.1", "10.0.0.1"));
  CHECK(admits(filter, "::ffff:127.0.0.1", "::ffff:127.0.0.1"));
}

TEST_CASE("address filter: one machine has one name, v4 or v4 in v6, with or without a zone", "[store]") {
  AddressFilter filter;
  filter.allow("10.0.0.2");
  filter.allow("fe80::2%lo");
  CHECK(admits(filter, "::ffff:10.0.0.2", "::ffff:10.0.0.1"));
  CHECK(admits(filter, "fe80::2", "fe80::1"));
  CHECK_FALSE(admits(filter, "::ffff:10.0.0.3", "::ffff:10.0.0.1"));
}

TEST_CASE("address filter: what is no address is named", "[store]") {
  CHECK(acc::test::error_of([] { AddressFilter().allow("node2"); }) ==
        "'node2': is not an address in numbers");
}
