// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/channel.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "acc/base/error.hpp"

namespace acc::launcher {

Channel make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error({.kind = ErrorKind::system,
                 .what = std::string("no pipe for a worker's output: ") + std::strerror(errno),
                 .hint = "raise the limit of open files (ulimit -n)"});
  }
  Channel channel = {Descriptor(ends[0]), Descriptor(ends[1])};
  // Only our end: a worker expects writes that wait.
  ::fcntl(channel.ours.get(), F_SETFL, O_NONBLOCK);
  return channel;
}

std::optional<Channel> make_pseudo_terminal(int like) {
  Channel channel = {Descriptor(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)), {}};
  if (!channel.ours || ::grantpt(channel.ours.get()) != 0 || ::unlockpt(channel.ours.get()) != 0) {
    return std::nullopt;
  }
  char name[64] = {};
  if (::ptsname_r(channel.ours.get(), name, sizeof name) != 0) return std::nullopt;
  channel.workers = Descriptor(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios mode = {};
  if (!channel.workers || ::tcgetattr(channel.workers.get(), &mode) != 0) return std::nullopt;
  ::cfmakeraw(&mode);
  ::tcsetattr(channel.workers.get(), TCSANOW, &mode);
  copy_window_size(like, channel.ours.get());
  return channel;
}

void copy_window_size(int like, int pseudo_terminal) {
  winsize size = {};
  if (::ioctl(like, TIOCGWINSZ, &size) == 0) ::ioctl(pseudo_terminal, TIOCSWINSZ, &size);
}

}  // namespace acc::launcher
