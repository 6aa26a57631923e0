// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/line_prefixer.hpp"

#include <algorithm>

namespace acc::launcher {
namespace {

// A longer line is shown in pieces.
constexpr std::size_t kMaxLine = std::size_t{1} << 20U;

}  // namespace

std::string LinePrefixer::feed(std::string_view chunk) {
  std::string lines;
  while (!chunk.empty()) {
    if (after_return_ && chunk.front() == '\n') chunk.remove_prefix(1);  // `\r\n` is one end
    after_return_ = false;
    const std::size_t end = chunk.find_first_of("\r\n");
    const std::string_view part = chunk.substr(0, end).substr(0, kMaxLine - line_.size());
    line_ += part;
    if (part.size() < std::min(end, chunk.size())) {
      lines += take_line();
      chunk.remove_prefix(part.size());
      continue;
    }
    if (end == std::string_view::npos) break;
    lines += take_line();
    after_return_ = chunk[end] == '\r';
    chunk.remove_prefix(end + 1);
  }
  return lines;
}

std::string LinePrefixer::finish() {
  return line_.empty() ? std::string() : take_line();
}

std::string LinePrefixer::take_line() {
  std::string shown = (options_.stamp ? options_.stamp() : std::string()) + prefix_ + line_ + '\n';
  if (options_.copy) options_.copy->take(line_, shown);
  line_.clear();
  return shown;
}

}  // namespace acc::launcher
