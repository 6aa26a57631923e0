// SPDX-License-Identifier: Apache-2.0
// What acc-selftest prints for a page: text that is no such JSON says nothing, and the page of the rest runs
// no script.
#include "acc/report/selftest_page.hpp"
#include "fuzz/promise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string page = acc::launcher::selftest_page(
      {.results = acc::launcher::parse_selftest_results(fuzz::text_of(data, size))});
  fuzz::require(page.find("<script") == std::string::npos, "the page has no script", page);
  fuzz::require(page == acc::printable(page), "the page has no control characters", page);
  return 0;
}
