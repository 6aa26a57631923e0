// SPDX-License-Identifier: Apache-2.0
#include "acc/report/html_text.hpp"

#include "support/catch.hpp"

namespace html_text_test {

using namespace acc::launcher;

TEST_CASE("html_text: nothing is markup, and no control character is left", "[report]") {
  CHECK(html_text("<a href=\"x\">'&'</a>") == "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  CHECK(html_text("\x1b[31mred\xff") == "\\x1b[31mred\\xff");
}

TEST_CASE("duration_text: two units at most", "[report]") {
  CHECK(duration_text(0) == "0 s");
  CHECK(duration_text(1e300) == duration_text(1e12));
  CHECK(duration_text(43.2e-6) == "43.2 µs");
  CHECK(duration_text(0.9998e-3) == "1 ms");
  CHECK(duration_text(0.0614) == "61.4 ms");
  CHECK(duration_text(9.1) == "9.1 s");
  CHECK(duration_text(59.97) == "1 min");
  CHECK(duration_text(250) == "4 min 10 s");
  CHECK(duration_text(3599.7) == "1 h");
  CHECK(duration_text(7500) == "2 h 5 min");
  CHECK(duration_text(86399) == "1 d");
  CHECK(duration_text(4.0 * 86400 + 3 * 3600) == "4 d 3 h");
}

TEST_CASE("energy_text: in units that people pay for", "[report]") {
  CHECK(energy_text(840) == "840 J");
  CHECK(energy_text(45'000) == "12.5 Wh");
  CHECK(energy_text(11.556e6) == "3.21 kWh");
  CHECK(energy_text(3.599e6) == "1 kWh");
  CHECK(energy_text(4.5e9) == "1.25 MWh");
  CHECK(energy_text(3.6e13) == "10000 MWh");
}

TEST_CASE("html_text: numbers as people read them", "[report]") {
  CHECK(count_text(7) == "7");
  CHECK(count_text(71234) == "71\u202f234");
  CHECK(count_text(-123456) == "-123\u202f456");
  CHECK(percent_text(0.742) == "74.2 %");
  CHECK(bytes_text(220'200'960) == "210 MiB");
  CHECK(rate_text(530e6) == "530 MB/s");
  CHECK(rate_text(999.9e6) == "1 GB/s");
  CHECK(date_text(1795805913.9) == "2026-11-27 18:58:33 UTC");
}

}  // namespace html_text_test
