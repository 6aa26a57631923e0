// SPDX-License-Identifier: Apache-2.0
#include "acc/report/job_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "acc/base/text.hpp"
#include "acc/report/html_page.hpp"
#include "acc/report/html_text.hpp"

namespace acc::launcher {
namespace {

std::string failure_entry(const JobHistory& history, const FailureRecord& failure) {
  std::string text = fmt::format("<p><strong>Rank {} on {}</strong>, attempt {}, after {}: {}</p>\n",
                                 failure.rank, html_text(failure.host), failure.attempt,
                                 duration_text(failure.time - history.time.begin), html_text(failure.status));
  if (!failure.message.empty()) text += "<p>" + html_text(failure.message) + "</p>\n";
  if (!failure.stderr_tail.empty()) text += "<pre>" + html_text(failure.stderr_tail) + "</pre>\n";
  return text;
}

// Of a script in an argument, as after `python -c`, the first lines.
std::string shown_word(const std::string& word) {
  constexpr std::size_t kMaxLines = 8;
  const std::vector<std::string> lines = split(word, '\n');
  if (lines.size() <= kMaxLines) return shell_word(word);
  const std::vector<std::string> first(lines.begin(), lines.begin() + kMaxLines);
  return fmt::format("{} (and {} more lines)", shell_word(join(first, "\n")), lines.size() - kMaxLines);
}

}  // namespace

std::string hosts_text(const JobHistory& history) {
  constexpr std::size_t kMaxNames = 4;
  std::vector<std::string> names(history.hosts.begin(), history.hosts.end());
  const std::size_t omitted = names.size() > kMaxNames ? names.size() - kMaxNames : 0;
  names.resize(names.size() - omitted);
  return join(names, ", ") + (omitted == 0 ? "" : fmt::format(" and {} more", omitted));
}

std::string failures_section(const JobHistory& history) {
  if (history.failures.empty()) return "";
  std::string text;
  const std::size_t count = std::min<std::size_t>(history.failures.size(), 50);
  for (std::size_t i = 0; i < count; ++i) text += failure_entry(history, history.failures[i]);
  if (count < history.failures.size())
    text += fmt::format("<p class=\"soft\">and {} more</p>\n", history.failures.size() - count);
  return section_of("Failures", text, " class=\"long\"");
}

std::string settings_section(const JobHistory& history) {
  if (history.command.empty() && history.settings.empty()) return "";
  std::vector<std::string> words;
  for (const std::string& word : history.command) words.push_back(shown_word(word));
  std::string text = "<p>Each worker ran:</p>\n<pre>" + html_text(join(words, " ")) + "</pre>\n";
  if (!history.settings.empty()) text += "<table>\n<tr><th>setting</th><th>value</th><th>from</th></tr>\n";
  for (const SettingRecord& setting : history.settings)
    text += "<tr><td>" + html_text(setting.name) + "</td><td>" + html_text(setting.value) + "</td><td>" +
            html_text(setting.origin) + "</td></tr>\n";
  if (!history.settings.empty()) text += "</table>\n<p class=\"soft\">All others have their defaults.</p>\n";
  return section_of("Settings", text, " class=\"long\"");
}

}  // namespace acc::launcher
