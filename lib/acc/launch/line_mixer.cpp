// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/line_mixer.hpp"

#include <algorithm>
#include <utility>

namespace acc::launcher {
namespace {

// A longer line is written as it arrives.
constexpr std::size_t kMaxHeld = std::size_t{64} << 10U;

}  // namespace

int LineMixer::add_source() {
  sources_[next_id_];
  return next_id_++;
}

void LineMixer::feed(int id, std::string_view chunk, bool drained, TimePoint now) {
  Source& source = sources_.at(id);
  source.drained = drained;
  if (holder_ && *holder_ != id) {
    source.pending += chunk;
    if (source.pending.empty() || source.queued) return;
    if (queue_.empty()) queue_since_ = now;
    source.queued = true;
    queue_.push_back(id);
    return;
  }
  write_from(id, chunk);
  if (holder_) {
    holder_wrote_ = now;
    holder_drained_ = drained;
  } else {
    release(now);
  }
}

// Writes all whole lines of the source whose turn it is, and the unfinished line if that must not be held
// back.
void LineMixer::write_from(int id, std::string_view chunk) {
  Source& source = sources_.at(id);
  const std::size_t newline = chunk.rfind('\n');
  const bool continues_line = holder_ == id && newline == std::string_view::npos;
  holder_.reset();
  std::string_view rest = chunk;
  if (newline != std::string_view::npos) {
    source.endless = false;
    write(source.pending);
    write(chunk.substr(0, newline + 1));
    source.pending.clear();
    rest = chunk.substr(newline + 1);
  }
  const std::size_t unfinished = source.pending.size() + rest.size();
  if (newline != std::string_view::npos && unfinished > 0 && !queue_.empty() && !source.closed) {
    source.pending += rest;  // others have waited for the end of a line
    source.queued = true;
    queue_.push_back(id);
    return;
  }
  const auto has_return = [](std::string_view text) { return text.find('\r') != std::string_view::npos; };
  const bool returns = has_return(source.pending) || has_return(rest);
  if (source.drained || source.closed || continues_line || unfinished > kMaxHeld) {
    write(source.pending);
    write(rest);
    source.pending.clear();
    if ((unfinished == 0 && !continues_line) || source.closed) return;
    holder_ = id;
    holder_is_progress_bar_ = (continues_line && holder_is_progress_bar_) || returns || source.endless;
  } else {
    source.pending += rest;
  }
}

void LineMixer::release(TimePoint now) {
  while (!holder_ && !queue_.empty()) {
    const int id = queue_.front();
    queue_.pop_front();
    Source& source = sources_.at(id);
    source.queued = false;
    const std::string chunk = std::exchange(source.pending, {});
    write_from(id, chunk);
    if (holder_) {
      holder_wrote_ = queue_since_ = now;
      holder_drained_ = source.drained;
    }
    if (source.closed) sources_.erase(id);
  }
}

void LineMixer::close_source(int id, TimePoint now) {
  Source& source = sources_.at(id);
  source.closed = true;
  if (source.queued) return;
  const std::string chunk = std::exchange(source.pending, {});
  if (holder_ && *holder_ != id) {
    // Not queued, so it holds nothing.
    sources_.erase(id);
    return;
  }
  write_from(id, chunk);
  sources_.erase(id);
  release(now);
}

void LineMixer::announce(std::string_view lines, TimePoint now) {
  if (!at_line_start_) write("\n");
  write(lines);
  holder_.reset();
  release(now);
}

std::size_t LineMixer::waiting(int source) const {
  const auto found = sources_.find(source);
  return found == sources_.end() ? 0 : found->second.pending.size();
}

std::optional<LineMixer::TimePoint> LineMixer::deadline() const {
  if (!holder_ || queue_.empty()) return std::nullopt;
  const Timeouts timeout = holder_is_progress_bar_ ? kProgressBar : holder_drained_ ? kLine : kLongLine;
  return std::min(holder_wrote_ + timeout.silence, queue_since_ + timeout.max);
}

void LineMixer::on_time(TimePoint now) {
  const auto due = deadline();
  if (!due || now < *due) return;
  sources_.at(*holder_).endless = !holder_drained_;
  holder_.reset();
  release(now);
}

void LineMixer::flush(TimePoint now) {
  while (!queue_.empty()) {
    holder_.reset();
    release(now);
  }
}

void LineMixer::write(std::string_view text) {
  if (text.empty()) return;
  at_line_start_ = text.back() == '\n';
  write_(text);
}

}  // namespace acc::launcher
