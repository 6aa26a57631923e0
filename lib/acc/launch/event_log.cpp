// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/event_log.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "acc/base/error.hpp"

namespace acc::launcher {

namespace {

// A pipe that nobody reads is an error here: opening it would otherwise wait for a reader.
Descriptor open_log(const std::filesystem::path& file) {
  Descriptor opened(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666));
  if (opened) ::fcntl(opened.get(), F_SETFL, O_APPEND);
  return opened;
}

std::string reason_of(int number, const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  std::error_code ignored;
  if (number == ENOENT && !folder.empty() && !std::filesystem::exists(folder, ignored))
    return "there is no folder " + folder.string();
  if (number == ENXIO) return "it is a pipe that nobody reads";
  return std::strerror(number);
}

}  // namespace

EventLog::EventLog(const std::filesystem::path& file, std::function<void(const std::string&)> on_full)
    : file_(open_log(file)), on_full_(std::move(on_full)) {
  if (file_) return;
  throw Error({.kind = ErrorKind::system,
               .what = "the event log cannot be written: " + reason_of(errno, file),
               .where = file.string(),
               .hint = "--event-log names another file"});
}

void EventLog::write(std::string_view line) {
  const std::string reason = file_.write(line);
  if (!reason.empty() && !std::exchange(told_, true)) on_full_(reason);
}

}  // namespace acc::launcher
