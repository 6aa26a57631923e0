// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/event_log.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/launch/write_all.hpp"

namespace acc {

EventLog::EventLog(const std::filesystem::path& file, std::function<void(const std::string&)> on_lost)
    : file_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)),
      on_lost_(std::move(on_lost)) {
  if (file_) return;
  throw Error({.kind = ErrorKind::system,
               .what = std::string("the event log cannot be written: ") + std::strerror(errno),
               .where = file.string(),
               .hint = "--event-log names another file"});
}

void EventLog::write(std::string_view line) {
  if (!file_) return;
  if (const std::string reason = write_all(file_, line); !reason.empty()) {
    file_.reset();
    on_lost_(reason);
  }
}

}  // namespace acc
