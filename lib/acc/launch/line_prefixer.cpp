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
    lines += prefix_;
    lines += line_;
    lines += '\n';
    line_.clear();
    after_return_ = chunk[end] == '\r';
    chunk.remove_prefix(end + 1);
  }
  return lines;
}

std::string LinePrefixer::finish() {
  if (line_.empty()) return {};
  std::string last = prefix_ + line_ + '\n';
  line_.clear();
  return last;
}

}  // namespace acc
