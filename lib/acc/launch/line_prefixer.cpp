// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/line_prefixer.hpp"

namespace acc {

std::string LinePrefixer::feed(std::string_view chunk) {
  std::string lines;
  while (!chunk.empty()) {
    if (after_return_ && chunk.front() == '\n') chunk.remove_prefix(1);  // `\r\n` is one end
    after_return_ = false;
    const std::size_t end = chunk.find_first_of("\r\n");
    line_ += chunk.substr(0, end);
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

}  // namespace acc
