// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/line_prefix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "acc/plan/line_template.hpp"

namespace acc::launcher {
std::string line_prefix(std::string_view line_prefix_template, const WorkerEnv& worker, int local_rank,
                        const std::string& host) {
  return substitute(line_prefix_template,
                    {{"role_name", worker.role_name},
                     {"rank", std::to_string(worker.rank)},
                     {"local_rank", std::to_string(local_rank)},
                     {"group_rank", std::to_string(worker.group_rank)},
                     {"host", host},
                     {"hostname", host},
                     {"attempt", std::to_string(worker.restart_count)}},
                    Escape::every_dollar);
}

std::string timestamp(std::chrono::system_clock::time_point time) {
  using namespace std::chrono;
  const std::time_t seconds = system_clock::to_time_t(floor<std::chrono::seconds>(time));
  const auto milliseconds = floor<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
  std::tm local = {};
  ::localtime_r(&seconds, &local);
  char date[32] = {};
  char zone[8] = {};
  std::strftime(date, sizeof date, "%FT%T", &local);
  std::strftime(zone, sizeof zone, "%z", &local);
  return fmt::format("{}.{:03}{}", date, milliseconds, zone);
}

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
      lines += end_line();
      chunk.remove_prefix(part.size());
      continue;
    }
    if (end == std::string_view::npos) break;
    lines += end_line();
    after_return_ = chunk[end] == '\r';
    chunk.remove_prefix(end + 1);
  }
  return lines;
}

std::string LinePrefixer::show_unfinished() {
  if (!has_unfinished()) return {};
  std::string text = with_prefix(std::string_view(line_).substr(shown_size_));
  shown_size_ = line_.size();
  return text;
}

std::string LinePrefixer::finish() {
  return line_.empty() ? std::string() : end_line();
}

std::string LinePrefixer::with_prefix(std::string_view text) const {
  std::string line = (options_.stamp ? options_.stamp() : std::string()) + prefix_;
  line += text;
  return line += '\n';
}

// The copy gets the whole line: its words decide whether it is kept.
std::string LinePrefixer::end_line() {
  std::string whole = with_prefix(line_);
  if (options_.copy) options_.copy->write(line_, whole);
  std::string text = shown_size_ == 0 ? std::move(whole) : show_unfinished();
  line_.clear();
  shown_size_ = 0;
  return text;
}

}  // namespace acc::launcher
