// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/interrupts.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "acc/base/error.hpp"

namespace acc::detail {
namespace {

std::atomic<int> event_of_handler = -1;

void on_interrupt(int /*signal*/) {
  const int before = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_of_handler, &one, sizeof one);
  errno = before;
}

}  // namespace

Interrupts::Interrupts()
    : event_(above_standard_streams(Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)))) {
  if (!event_)
    throw Error({.kind = ErrorKind::system, .what = std::string("no eventfd: ") + std::strerror(errno)});
  ::sigaction(SIGINT, nullptr, &before_);
  if (before_.sa_handler == SIG_IGN) return;
  event_of_handler = event_.get();
  struct sigaction ours = {};
  ours.sa_handler = on_interrupt;
  ours.sa_flags = SA_RESTART;  // other threads of the program are not disturbed
  taken_ = ::sigaction(SIGINT, &ours, nullptr) == 0;
}

Interrupts::~Interrupts() {
  restore();
}

void Interrupts::acknowledge() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(event_.get(), &count, sizeof count);
}

void Interrupts::pass_on() {
  restore();
  // The default action would end the program.
  if (before_.sa_handler != SIG_DFL) ::raise(SIGINT);
}

void Interrupts::restore() {
  if (std::exchange(taken_, false)) ::sigaction(SIGINT, &before_, nullptr);
}

}  // namespace acc::detail
