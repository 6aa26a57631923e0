// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/backlog.hpp"

#include <utility>

namespace acc::launcher {

void Backlog::add_or_drop(std::string_view text, std::size_t max) {
  if (text.empty()) return;
  if (dropping_ && within_line_) {
    const std::size_t end = text.find('\n');
    const std::size_t rest = end == std::string_view::npos ? text.size() : end + 1;
    dropped_ += rest;
    text.remove_prefix(rest);
    if (end == std::string_view::npos) return;
    within_line_ = false;
  }
  const std::size_t room = max > size() ? max - size() : 0;
  if (text.size() <= room) {
    if (text.empty()) return;
    if (std::exchange(dropping_, false) && cut_) kept_ += '\n';
    kept_ += text;
    cut_ = text.back() != '\n';
    return;
  }
  if (!std::exchange(dropping_, true)) {
    const std::size_t last_line_end = text.substr(0, room).rfind('\n');
    const std::size_t fits = last_line_end == std::string_view::npos ? 0 : last_line_end + 1;
    kept_ += text.substr(0, fits);
    if (fits > 0) cut_ = false;
    text.remove_prefix(fits);
  }
  dropped_ += text.size();
  within_line_ = text.back() != '\n';
}

void Backlog::remove(std::size_t bytes) {
  written_ += bytes;
  if (written_ == kept_.size()) {
    kept_.clear();
    kept_.shrink_to_fit();
    written_ = 0;
  } else if (written_ > kept_.size() / 2) {
    kept_.erase(0, written_);
    written_ = 0;
  }
}

void Backlog::drop() {
  dropped_ += size();
  remove(size());
}

}  // namespace acc::launcher
