// SPDX-License-Identifier: Apache-2.0
// What another node says of the worker that failed there: whatever it sends, it is some failure, which can be
// shown, and which is the same when it is sent on.
#include "acc/launch/launch_report.hpp"
#include "fuzz/promise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const acc::launcher::WorkerFailure failure = acc::launcher::parse_failure(text);
  fuzz::require(failure.host == acc::printable(failure.host), "a host is printable", failure.host);
  const std::string sent = to_json_text(failure);
  fuzz::require(sent.find('\n') == std::string::npos, "a failure is one line", sent);
  const acc::launcher::WorkerFailure again = acc::launcher::parse_failure(sent);
  fuzz::require(to_json_text(again) == sent, "a failure is the same when it is sent on", text);
  fuzz::require(
      again.status == failure.status && again.time == failure.time && again.error_file == failure.error_file,
      "its cause is the same when it is sent on", text);
  return 0;
}
