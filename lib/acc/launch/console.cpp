// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/console.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace acc {

Console::Console(int fd) : fd_(fd) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) {
    broken_ = true;
    return;
  }
  if (S_ISSOCK(info.st_mode)) {
    kind_ = Kind::socket;
  } else if (S_ISFIFO(info.st_mode) || ::isatty(fd) == 1) {
    // O_NONBLOCK belongs to the open description, which the shell and others share: we need one of our own. A
    // session leader must not take the terminal over.
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    own_ = Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    kind_ = own_ ? Kind::own_description : Kind::shared;
  }
}

void Console::write(std::string_view text) {
  if (backlog() == 0) text.remove_prefix(write_some(text));
  if (!broken_) kept_ += text;
}

bool Console::flush() {
  written_ += write_some(std::string_view(kept_).substr(written_));
  if (broken_ || written_ == kept_.size()) {
    kept_.clear();
    kept_.shrink_to_fit();
    written_ = 0;
  } else if (written_ > kept_.size() / 2) {
    kept_.erase(0, written_);
    written_ = 0;
  }
  return kept_.empty();
}

Descriptor Console::make_writable_event() const {
  Descriptor event(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event wanted = {.events = EPOLLOUT, .data = {}};
  ::epoll_ctl(event.get(), EPOLL_CTL_ADD, native_handle(), &wanted);
  return event;
}

std::size_t Console::write_some(std::string_view text) {
  std::size_t done = 0;
  while (!broken_ && done < text.size()) {
    const char* data = text.data() + done;
    const std::size_t size = text.size() - done;
    ssize_t n = 0;
    if (kind_ == Kind::socket) {
      n = ::send(fd_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (kind_ == Kind::shared) {
      pollfd ready = {.fd = fd_, .events = POLLOUT, .revents = 0};
      if (::poll(&ready, 1, 0) != 1) break;
      n = ::write(fd_, data, std::min<std::size_t>(size, PIPE_BUF));
    } else {
      n = ::write(native_handle(), data, size);
    }
    if (n >= 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      // EPIPE, a full disk, a terminal that is gone: the job is worth more than its output.
      broken_ = true;
    }
  }
  return broken_ ? text.size() : done;
}

bool same_file(int one, int other) {
  struct stat a = {};
  struct stat b = {};
  if (::fstat(one, &a) != 0 || ::fstat(other, &b) != 0) return false;
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_rdev == b.st_rdev;
}

}  // namespace acc
