// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/printable.hpp"

/// What each fuzzer promises: whatever the bytes are, they give a value or one acc::Error; never a crash,
/// another exception, an endless loop, or memory beyond the bytes.
namespace fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the program, which libFuzzer and CTest take for a failure, if a promise does not hold.
inline void require(bool holds, std::string_view promise, std::string_view text = {}) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %.*s\n%s\n", static_cast<int>(promise.size()), promise.data(),
               acc::printable(text).c_str());
  std::abort();
}

/// An error has words, moves no cursor, and does not repeat an input without an end.
inline void require_clear(const acc::Error& error) {
  constexpr std::size_t kMaxLine = 2000;
  for (const acc::Problem& problem : error.problems()) {
    const std::string text = to_string(problem);
    require(!problem.what.empty(), "an error says what is wrong", text);
    require(text == acc::printable(text), "an error has no control characters", text);
    require(text.size() <= kMaxLine, "an error is one line that can be read", text);
  }
}

/// What `read` returns; absent: it threw an error that is clear.
template <class Read>
auto value_or_error(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const acc::Error& error) {
    require_clear(error);
    return std::nullopt;
  }
}

/// The front of an input as small numbers, for what shapes a call: sizes, kinds, where to cut.
class Choices {
 public:
  explicit Choices(std::string_view& bytes) : bytes_(bytes) {}

  std::size_t below(std::size_t limit) {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return value % limit;
  }

 private:
  std::string_view& bytes_;
};

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
