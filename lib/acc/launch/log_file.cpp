// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/log_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace acc::launcher {
namespace {

constexpr std::size_t kMaxKept = std::size_t{64} << 10U;

}  // namespace

std::size_t write_to_file(int fd, std::string_view text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n >= 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      break;
    }
  }
  return done;
}

std::string LogFile::flush() {
  if (backlog_.empty()) return {};
  backlog_.remove(write_to_file(file_.get(), backlog_.text()));
  return backlog_.empty() ? "" : std::strerror(errno);
}

std::string LogFile::write(std::string_view text) {
  std::string problem = flush();
  if (problem.empty()) {
    const std::size_t done = write_to_file(file_.get(), text);
    backlog_.pass(text.substr(0, done));
    text.remove_prefix(done);
    if (text.empty()) return {};
    problem = std::strerror(errno);
  }
  backlog_.add_or_drop(text, kMaxKept);
  return problem;
}

std::uint64_t LogFile::close() {
  if (file_) flush();
  backlog_.drop();
  file_.reset();
  return backlog_.dropped_bytes();
}

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
