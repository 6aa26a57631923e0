// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/filtered_log.hpp"

#include <algorithm>
#include <utility>

#include "acc/launch/write_all.hpp"

namespace acc {

FilteredLog::FilteredLog(Descriptor file, std::vector<std::string> words,
                         std::function<void(const std::string&)> on_lost)
    : file_(std::move(file)), words_(std::move(words)), on_lost_(std::move(on_lost)) {}

void FilteredLog::take(std::string_view line, std::string_view shown) {
  const bool wanted = std::ranges::any_of(
      words_, [&](const std::string& word) { return line.find(word) != std::string_view::npos; });
  if (!file_ || !wanted) return;
  if (const std::string reason = write_all(file_, shown); !reason.empty()) {
    file_.reset();
    on_lost_(reason);
  }
}

}  // namespace acc
