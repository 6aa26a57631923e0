// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/log_file.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <type_traits>
#include <utility>

#include "acc/base/append_file.hpp"
#include "acc/base/error.hpp"

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
    if (std::exchange(dropping_, false) && cut_) pending_ += '\n';
    pending_ += text;
    cut_ = text.back() != '\n';
    return;
  }
  if (!std::exchange(dropping_, true)) {
    const std::size_t last_line_end = text.substr(0, room).rfind('\n');
    const std::size_t fits = last_line_end == std::string_view::npos ? 0 : last_line_end + 1;
    pending_ += text.substr(0, fits);
    if (fits > 0) cut_ = false;
    text.remove_prefix(fits);
  }
  dropped_ += text.size();
  within_line_ = text.back() != '\n';
}

void Backlog::remove(std::size_t bytes) {
  written_ += bytes;
  if (written_ == pending_.size()) {
    pending_.clear();
    pending_.shrink_to_fit();
    written_ = 0;
  } else if (written_ > pending_.size() / 2) {
    pending_.erase(0, written_);
    written_ = 0;
  }
}

void Backlog::drop() {
  dropped_ += size();
  remove(size());
}

void Backlog::drop_rest_of_line() {
  const std::size_t end = text().find('\n');
  const std::size_t rest = end == std::string_view::npos ? size() : end + 1;
  dropped_ += rest;
  remove(rest);
  if (empty()) cut_ = false;
}

namespace {

constexpr std::size_t kMaxKept = std::size_t{64} << 10U;
// How long close() waits for a reader that does not read.
constexpr int kMaxCloseMs = 1000;
// How often an event log is looked for by its name.
constexpr std::chrono::minutes kLookInterval{1};

std::optional<FileId> id_of_regular(int file) {
  struct stat status = {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileId(status);
}

template <class... Arguments>
void call_once(std::function<void(Arguments...)>& callback,
               const std::type_identity_t<Arguments>&... arguments) {
  if (const auto call = std::exchange(callback, nullptr)) call(arguments...);
}

}  // namespace

std::size_t write_to_file(int fd, std::string_view text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(fd, text.data() + written, text.size() - written);
    if (n >= 0) {
      written += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      break;
    }
  }
  return written;
}

void LogFile::replace(Descriptor file) {
  if (std::exchange(within_line_, false)) backlog_.drop_rest_of_line();
  file_ = std::move(file);
}

std::size_t LogFile::write_now(std::string_view text) {
  const std::size_t written = write_to_file(file_.get(), text);
  if (written > 0) within_line_ = text[written - 1] != '\n';
  return written;
}

std::string LogFile::flush() {
  if (backlog_.empty()) return {};
  backlog_.remove(write_now(backlog_.text()));
  return backlog_.empty() ? "" : append_problem(errno, path_);
}

std::string LogFile::write(std::string_view text) {
  std::string problem = flush();
  if (problem.empty()) {
    const std::size_t done = write_now(text);
    backlog_.pass(text.substr(0, done));
    text.remove_prefix(done);
    if (text.empty()) return {};
    problem = append_problem(errno, path_);
  }
  backlog_.add_or_drop(text, kMaxKept);
  return problem;
}

std::uint64_t LogFile::close() {
  // A reader that is only slow gets the rest.
  for (pollfd room = {.fd = file_.get(), .events = POLLOUT, .revents = 0};
       file_ && !flush().empty() && errno == EAGAIN && ::poll(&room, 1, kMaxCloseMs) == 1;) {
  }
  backlog_.drop();
  file_.reset();
  return backlog_.dropped_bytes();
}

FilteredLog::FilteredLog(Descriptor file, std::vector<std::string> words,
                         std::function<void(const std::string&)> on_full)
    : file_(std::move(file)), words_(std::move(words)), on_full_(std::move(on_full)) {}

void FilteredLog::write(std::string_view line, std::string_view prefixed) {
  const bool matches = std::ranges::any_of(
      words_, [&](const std::string& word) { return line.find(word) != std::string_view::npos; });
  if (!matches) return;
  if (const std::string reason = file_.write(prefixed); !reason.empty()) on_full_(reason);
}

EventLog::EventLog(std::filesystem::path file, EventLogCallbacks callbacks, TimePoint now)
    : path_(std::move(file)), looked_(now), callbacks_(std::move(callbacks)) {
  Descriptor opened = open_to_append(path_);
  if (!opened) {
    throw Error({.kind = ErrorKind::system,
                 .what = "the event log cannot be written: " + append_problem(errno, path_),
                 .where = path_.string(),
                 .hint = "give --event-log another file"});
  }
  id_ = id_of_regular(opened.get());
  file_ = LogFile(std::move(opened), path_);
}

void EventLog::write(std::string_view line, TimePoint now) {
  if (id_ && now - looked_ >= kLookInterval) look_for_name(now);
  if (const std::string reason = file_.write(line); !reason.empty()) call_once(callbacks_.on_full, reason);
}

void EventLog::look_for_name(TimePoint now) {
  looked_ = now;
  const auto named = file_id(path_);
  // That a file server does not answer says nothing about the file.
  if (named ? named == id_ : errno != ENOENT && errno != ENOTDIR) return;
  Descriptor opened = open_to_append(path_);
  if (!opened) return call_once(callbacks_.on_not_replaced, append_problem(errno, path_));
  id_ = id_of_regular(opened.get());
  file_.replace(std::move(opened));
  call_once(callbacks_.on_replaced);
}

}  // namespace acc::launcher
