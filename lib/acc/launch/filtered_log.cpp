// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/filtered_log.hpp"

#include <algorithm>
#include <utility>

namespace acc::launcher {

FilteredLog::FilteredLog(Descriptor file, std::vector<std::string> words,
                         std::function<void(const std::string&)> on_full)
    : file_(std::move(file)), words_(std::move(words)), on_full_(std::move(on_full)) {}

void FilteredLog::take(std::string_view line, std::string_view shown) {
  const bool wanted = std::ranges::any_of(
      words_, [&](const std::string& word) { return line.find(word) != std::string_view::npos; });
  if (!wanted) return;
  if (const std::string reason = file_.write(shown); !reason.empty()) on_full_(reason);
}

}  // namespace acc::launcher
