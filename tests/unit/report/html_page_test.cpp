// SPDX-License-Identifier: Apache-2.0
#include "acc/report/html_page.hpp"

#include "support/catch.hpp"

namespace html_page_test {

using namespace acc::launcher;

TEST_CASE("html_page: permits nothing but its own style", "[report]") {
  const std::string page = html_page("a title", "<p>content</p>\n");
  CHECK(page.starts_with("<!DOCTYPE html>\n"));
  CHECK(page.find("default-src 'none'; style-src 'unsafe-inline'") != std::string::npos);
  CHECK(page.find("<title>a title</title>") != std::string::npos);
  CHECK(page.ends_with("<body>\n<p>content</p>\n</body>\n</html>\n"));
}

TEST_CASE("html_page: sections, figures and legends are elements", "[report]") {
  CHECK(section_of("Links", "text\n") == "<section>\n<h2>Links</h2>\ntext\n</section>\n");
  CHECK(section_of("A", "", " class=\"long\"").starts_with("<section class=\"long\">"));
  CHECK(figure_card("Steps", "7", "in all") == "<div><dt>Steps</dt><dd>7 <small>in all</small></dd></div>\n");
  CHECK(number_cell("7 ms") == "<td class=\"number\">7 ms</td>");
  CHECK(number_cell("7 ms", true) == "<td class=\"number bad\">7 ms</td>");
  CHECK(legend_entry("s1", "fast") == R"(<li><span class="key s1"></span>fast</li>)");
}

}  // namespace html_page_test
