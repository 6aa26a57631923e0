// SPDX-License-Identifier: Apache-2.0
// Event logs, of one node or two (a line of `%` is between them), whole, cut or invented: what is not an
// event is passed over, and the page of the rest runs no script and shows no control characters.
#include "acc/report/report_page.hpp"
#include "fuzz/promise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  acc::launcher::EventLines lines;
  const std::size_t end = std::min(text.find("\n%\n"), text.size());
  add_event_lines(lines, text.substr(0, end), "a.jsonl");
  add_event_lines(lines, text.substr(end), "b.jsonl");
  const auto history = fuzz::value_or_error([&] { return acc::launcher::job_history(std::move(lines)); });
  if (!history) return 0;
  const std::string page = report_page(*history);
  fuzz::require(page.find("<script") == std::string::npos, "the page has no script", page);
  fuzz::require(page == acc::printable(page), "the page has no control characters", page);
  for (const std::string_view number : {"\"nan\"", "\"inf\"", "\"-inf\"", " nan", " inf"})
    fuzz::require(page.find(number) == std::string::npos, "a chart has numbers", page);
  return 0;
}
