// SPDX-License-Identifier: Apache-2.0
// What nodes of a job send each other: a line of JSON is a message, or is refused. A message that is sent on
// is the same where it arrives.
#include "acc/rendezvous/node_message.hpp"
#include "fuzz/promise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using acc::launcher::decode;
  const auto message = fuzz::value_or_error([&] { return decode(fuzz::text_of(data, size)); });
  if (!message) return 0;
  const std::string line = encode(*message);
  fuzz::require(line.find('\n') + 1 == line.size(), "a message is one line", line);
  fuzz::require(decode(line) == *message, "a message is the same where it arrives", line);
  return 0;
}
