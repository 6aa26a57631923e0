// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/event_log.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "acc/base/error.hpp"

namespace acc {

EventLog::EventLog(const std::filesystem::path& file, std::function<void(const std::string&)> on_full)
    : file_(Descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666))),
      on_full_(std::move(on_full)) {
  if (file_) return;
  throw Error({.kind = ErrorKind::system,
               .what = std::string("the event log cannot be written: ") + std::strerror(errno),
               .where = file.string(),
               .hint = "--event-log names another file"});
}

void EventLog::write(std::string_view line) {
  const std::string reason = file_.write(line);
  if (!reason.empty() && !std::exchange(told_, true)) on_full_(reason);
}

}  // namespace acc
