// SPDX-License-Identifier: Apache-2.0
// The file in which a worker says why it failed, whatever wrote it: it is read, is not longer in a report
// than its limit, and the exit code can be added to it.
#include "acc/launch/error_file.hpp"

#include "fuzz/promise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using acc::launcher::parse_error_file;
  const std::string_view text = fuzz::text_of(data, size);
  const acc::launcher::ErrorFile file = parse_error_file(text);
  constexpr std::size_t kMaxText = (std::size_t{64} << 10U) + 100;
  fuzz::require(file.message.size() <= kMaxText && file.traceback.size() <= kMaxText,
                "its texts are limited");
  const auto with_code = parse_error_file(acc::launcher::with_error_code(text, acc::launcher::Exited{3}));
  fuzz::require(with_code.valid == file.valid && with_code.lost_ranks == file.lost_ranks &&
                    with_code.time == file.time && with_code.consequence == file.consequence,
                "it says the same with an exit code", text);
  const auto time = file.time.value_or(std::chrono::system_clock::time_point());
  fuzz::require(parse_error_file(acc::launcher::to_error_json(file.message, file.traceback, time)).valid,
                "it can be written again", text);
  return 0;
}
