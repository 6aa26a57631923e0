// SPDX-License-Identifier: Apache-2.0
#include "acc/report/selftest_links.hpp"

#include "support/catch.hpp"
#include "support/count.hpp"
#include "support/selftest_results.hpp"

namespace selftest_links_test {

using namespace acc;
using namespace acc::launcher;
using test::count;
using test::selftest_results;

TEST_CASE("selftest_links: numbers in one unit, classes from the fastest, lines between hosts", "[report]") {
  const std::string section = links_section(selftest_results(4, 2));
  CHECK(count(section, "latency, half of a round trip, in µs") == 1);
  CHECK(count(section, "bandwidth, of 1 MiB, in GB/s") == 1);
  CHECK(count(section, "class=\"on-s0\">10</text>") == 8);
  CHECK(count(section, "class=\"on-s6\">40</text>") == 8);
  CHECK(count(section, "class=\"on-s6\">1</text>") == 8);
  CHECK(count(section, "class=\"border\"") == 2);
  CHECK(count(section, "Lines divide the hosts.") == 1);
}

TEST_CASE("selftest_links: an outlier is filled, framed, and the first of the slowest pairs", "[report]") {
  SelftestResults results = selftest_results(4, 4);
  results.links[2].latency_seconds = 90e-6;
  results.links[2].latency_outlier = true;
  const std::string section = links_section(results);
  CHECK(count(section, "class=\"slow\"><title>rank 0 – rank 3: 90 µs, an outlier</title>") == 1);
  CHECK(count(section, "class=\"frame\"") == 1);
  CHECK(count(section,
              "</th></tr>\n<tr><td>0 on node0</td><td>3 on node0</td><td class=\"number bad\">90 µs") == 1);
}

TEST_CASE("selftest_links: in a folded matrix a cell with an outlier is only framed", "[report]") {
  SelftestResults results = selftest_results(72, 8);
  results.links[70].bandwidth_outlier = true;  // of ranks 0 and 71
  const std::string section = links_section(results);
  CHECK(count(section, "ranks 0 to 7 – ranks 64 to 71: 1 GB/s, 1 of 64 pairs are outliers") == 1);
  CHECK(count(section, "<span class=\"key framed\"></span>has outliers") == 1);
  CHECK(count(section, "class=\"slow\"") == 0);
}

TEST_CASE("selftest_links: without links there is no section", "[report]") {
  CHECK(links_section(selftest_results(1, 1)).empty());
}

}  // namespace selftest_links_test
