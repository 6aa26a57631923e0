// SPDX-License-Identifier: Apache-2.0
#include "acc/base/host_name.hpp"

#include "support/catch.hpp"

namespace host_name_test {

using acc::parse_host_name;

TEST_CASE("host_name: names and addresses name a host, with IPv6 in brackets or not", "[base]") {
  for (const char* text : {"node0", "my_node-1.example.org", "10.0.0.1", "::1", "fe80::1%eth0"})
    CHECK(parse_host_name(text) == text);
  CHECK(parse_host_name("[fd00::1]") == "fd00::1");
}

TEST_CASE("host_name: a port, a URL, blanks and nothing name none", "[base]") {
  for (const char* text : {"", "[]", "[", "10.0.0.1:29500", "[::1]:5", "node0:", ":::", "http://node0",
                           "node0 ", "10.0.0.1 10.0.0.2", "10.0.0.1,10.0.0.2"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_host_name(text).has_value());
  }
}

}  // namespace host_name_test
