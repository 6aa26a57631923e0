// SPDX-License-Identifier: Apache-2.0
#include "acc/store/admission.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace admission_test {

using acc::launcher::Admission;
using acc::launcher::Standing;
using Others = acc::launcher::StoreClients::Others;

namespace {

Standing standing(const Admission& admission, const std::string& peer, const std::string& own = "10.0.0.1") {
  return admission.standing(boost::asio::ip::make_address(peer), boost::asio::ip::make_address(own));
}

}  // namespace

TEST_CASE("admission: at first every client is a member", "[store]") {
  CHECK(standing(Admission(), "10.9.9.9") == Standing::member);
}

TEST_CASE("admission: nodes are members, and others are as configured", "[store]") {
  Admission admission;
  for (const auto& [others, expected] :
       {std::pair(Others::members, Standing::member), std::pair(Others::strangers, Standing::stranger),
        std::pair(Others::refused, Standing::refused)}) {
    admission.serve({.nodes = {"10.0.0.2"}, .others = others});
    CHECK(standing(admission, "10.0.0.2") == Standing::member);
    CHECK(standing(admission, "10.9.9.9") == expected);
  }
  admission.serve({.others = Others::refused});
  CHECK(standing(admission, "10.0.0.2") == Standing::refused);
}

TEST_CASE("admission: this machine is local by each of its addresses", "[store]") {
  Admission admission({"10.0.0.1", "10.1.0.1", "fe80::1"});
  admission.serve({.nodes = {"10.1.0.1"}, .others = Others::refused});
  for (const std::string peer :
       {"127.0.0.1", "127.0.0.7", "::1", "10.0.0.1", "10.1.0.1", "fe80::1", "10.2.0.1"}) {
    CAPTURE(peer);
    // The last is not a known address, but the local one of the connection.
    CHECK(standing(admission, peer, "10.2.0.1") == Standing::local);
  }
  CHECK(standing(admission, "::ffff:127.0.0.1", "::ffff:127.0.0.1") == Standing::local);
}

TEST_CASE("admission: v4-mapped addresses and zones are equal to the plain address", "[store]") {
  Admission admission;
  admission.serve({.nodes = {"10.0.0.2", "fe80::2%lo"}, .others = Others::refused});
  CHECK(standing(admission, "::ffff:10.0.0.2", "::ffff:10.0.0.1") == Standing::member);
  CHECK(standing(admission, "fe80::2", "fe80::1") == Standing::member);
  CHECK(standing(admission, "::ffff:10.0.0.3", "::ffff:10.0.0.1") == Standing::refused);
}

TEST_CASE("admission: an invalid address is an error that names it", "[store]") {
  CHECK(acc::test::error_of([] { Admission().serve({.nodes = {"node2"}}); }) ==
        "'node2': is not a numeric address");
}

}  // namespace admission_test
