// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that waits around system calls whose order between processes matters, so that
// windows open which load alone opens once in a thousand runs:
//
//   ACC_DELAYS_SEED      the waits' random numbers; without it there are none. The same seed opens the same
//   windows, as far
//                        as a process makes the same calls: each has a sequence of its own, from its program,
//                        its arguments that are no paths, its rank and restart, and each of its threads from
//                        the order of their first calls.
//   ACC_DELAYS_PROGRAMS  a,b: only programs of these names wait; !a,b: all others do (default: !ctest)
//   ACC_DELAYS_RATE      of a thousand calls so many are waited at (default 30), before and after each
//   ACC_DELAYS_MAX_US    the longest of the usual waits (default 3000); one in fifty is up to fifty times as
//   long
//
// Calls within libc are not seen. Nothing here allocates or locks: between clone and exec a child has its
// parent's memory.
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string_view>

namespace {

constexpr std::uint64_t kLongWait = 50;  // one in so many is up to so many times as long

bool active = false;
std::uint64_t rate = 30;
std::uint64_t max_us = 3000;
std::uint64_t process_seed = 0;
std::atomic<std::uint64_t> threads = 0;
thread_local std::uint64_t state = 0;

std::uint64_t mix(std::uint64_t number) {  // splitmix64
  number += 0x9E3779B97F4A7C15U;
  number = (number ^ (number >> 30U)) * 0xBF58476D1CE4E5B9U;
  number = (number ^ (number >> 27U)) * 0x94D049BB133111EBU;
  return number ^ (number >> 31U);
}

std::uint64_t mix(std::uint64_t number, std::string_view text) {
  for (const char letter : text) number = mix(number ^ static_cast<unsigned char>(letter));
  return mix(number);
}

std::uint64_t draw() {
  if (state == 0) state = mix(process_seed + ++threads);
  return mix(++state);
}

void wait_sometimes() {
  if (!active || draw() % 1000 >= rate) return;
  const std::uint64_t longest = draw() % kLongWait == 0 ? max_us * kLongWait : max_us;
  const std::uint64_t wait_us = draw() % (longest + 1);
  const timespec wait = {.tv_sec = static_cast<time_t>(wait_us / 1'000'000),
                         .tv_nsec = static_cast<long>(wait_us % 1'000'000 * 1000)};
  const int before = errno;
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, nullptr);
  errno = before;
}

bool names(std::string_view list, std::string_view program) {
  for (;;) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == program) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

bool is_chosen(std::string_view program) {
  const char* chosen = ::getenv("ACC_DELAYS_PROGRAMS");
  const std::string_view list = chosen == nullptr ? "!ctest" : chosen;
  return list.starts_with('!') ? !names(list.substr(1), program) : names(list, program);
}

std::uint64_t number(const char* name, std::uint64_t default_value) {
  const char* text = ::getenv(name);
  return text == nullptr ? default_value : ::strtoull(text, nullptr, 10);
}

// Paths differ from run to run.
std::uint64_t seed_of_process(int count, char** words) {
  std::uint64_t seed = mix(number("ACC_DELAYS_SEED", 0), program_invocation_short_name);
  for (int i = 1; i < count; ++i) {
    if (::strchr(words[i], '/') == nullptr) seed = mix(seed, words[i]);
  }
  for (const char* name : {"RANK", "TORCHELASTIC_RESTART_COUNT"}) {
    if (const char* value = ::getenv(name)) seed = mix(seed, value);
  }
  return seed;
}

__attribute__((constructor)) void begin(int count, char** words, char** /*environment*/) {
  if (::getenv("ACC_DELAYS_SEED") == nullptr || !is_chosen(program_invocation_short_name)) return;
  rate = number("ACC_DELAYS_RATE", rate);
  max_us = number("ACC_DELAYS_MAX_US", max_us);
  process_seed = seed_of_process(count, words);
  active = true;
}

// The functions behind those of this library, for the constructors that run before its own, too.
template <class Function>
Function* find_next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// EXCEPTIONS: noexcept where libc's header says so.
#define DELAYED(RESULT, NAME, PARAMETERS, ARGUMENTS, EXCEPTIONS) \
  namespace {                                                    \
  RESULT(*next_##NAME) PARAMETERS = nullptr;                     \
  __attribute__((constructor)) void find_##NAME() {              \
    next_##NAME = find_next<RESULT PARAMETERS>(#NAME);           \
  }                                                              \
  }                                                              \
  extern "C" RESULT NAME PARAMETERS EXCEPTIONS {                 \
    if (next_##NAME == nullptr) find_##NAME();                   \
    wait_sometimes();                                            \
    const RESULT returned = next_##NAME ARGUMENTS;               \
    wait_sometimes();                                            \
    return returned;                                             \
  }

DELAYED(int, connect, (int fd, const sockaddr* address, socklen_t size), (fd, address, size), )
DELAYED(int, accept, (int fd, sockaddr* address, socklen_t* size), (fd, address, size), )
DELAYED(int, accept4, (int fd, sockaddr* address, socklen_t* size, int flags), (fd, address, size, flags), )
DELAYED(ssize_t, recv, (int fd, void* data, size_t size, int flags), (fd, data, size, flags), )
DELAYED(ssize_t, send, (int fd, const void* data, size_t size, int flags), (fd, data, size, flags), )
DELAYED(ssize_t, recvmsg, (int fd, msghdr* message, int flags), (fd, message, flags), )
DELAYED(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), (fd, message, flags), )
DELAYED(ssize_t, read, (int fd, void* data, size_t size), (fd, data, size), )
DELAYED(ssize_t, write, (int fd, const void* data, size_t size), (fd, data, size), )
DELAYED(int, poll, (pollfd * fds, nfds_t count, int timeout), (fds, count, timeout), )
DELAYED(int, epoll_wait, (int fd, epoll_event* events, int size, int timeout), (fd, events, size, timeout), )
DELAYED(int, sigwait, (const sigset_t* set, int* signal), (set, signal), )
DELAYED(int, sigwaitinfo, (const sigset_t* set, siginfo_t* info), (set, info), )
DELAYED(int, waitid, (idtype_t kind, id_t id, siginfo_t* info, int options), (kind, id, info, options), )
DELAYED(pid_t, waitpid, (pid_t pid, int* status, int options), (pid, status, options), )
DELAYED(int, kill, (pid_t pid, int signal), (pid, signal), noexcept)
DELAYED(int, sigqueue, (pid_t pid, int signal, const sigval value), (pid, signal, value), noexcept)
DELAYED(int, rename, (const char* from, const char* to), (from, to), noexcept)
DELAYED(int, fsync, (int fd), (fd), )

#undef DELAYED

namespace {

using Clone = int(int (*)(void*), void*, int, void*, ...) noexcept;

// The child, which may have this memory, does not return from here.
int clone_between_waits(Clone* next, int (*run)(void*), void* stack, int flags, void* given, va_list more) {
  pid_t* const parent_id = va_arg(more, pid_t*);
  void* const storage = va_arg(more, void*);
  pid_t* const child_id = va_arg(more, pid_t*);
  wait_sometimes();
  const int returned = next(run, stack, flags, given, parent_id, storage, child_id);
  wait_sometimes();
  return returned;
}

Clone* next_clone = nullptr;
pid_t (*next_fork)() = nullptr;
long (*next_syscall)(long, ...) = nullptr;
__attribute__((constructor)) void find_the_others() {
  next_clone = find_next<Clone>("clone");
  next_fork = find_next<pid_t()>("fork");
  next_syscall = find_next<long(long, ...)>("syscall");
}

}  // namespace

// acc calls the one by its other name under the thread sanitizer.
extern "C" int clone(int (*run)(void*), void* stack, int flags, void* given, ...) noexcept {
  va_list more;
  va_start(more, given);
  const int returned = clone_between_waits(next_clone, run, stack, flags, given, more);
  va_end(more);
  return returned;
}

extern "C" int __clone(int (*run)(void*), void* stack, int flags, void* given, ...) noexcept {
  va_list more;
  va_start(more, given);
  const int returned = clone_between_waits(find_next<Clone>("__clone"), run, stack, flags, given, more);
  va_end(more);
  return returned;
}

extern "C" pid_t fork() noexcept {
  if (next_fork == nullptr) find_the_others();
  wait_sometimes();
  const std::uint64_t seed_of_child = draw();
  const pid_t pid = next_fork();
  if (pid == 0) {
    process_seed = state = seed_of_child;
    threads = 0;
  }
  wait_sometimes();
  return pid;
}

// The two for which libc has no function, or not the one that is meant. Also called between clone and exec,
// by other numbers.
extern "C" long syscall(long number, ...) noexcept {
  if (next_syscall == nullptr) find_the_others();
  va_list more;
  va_start(more, number);
  long words[6];
  for (long& word : words) word = va_arg(more, long);
  va_end(more);
  const bool waits = number == SYS_pidfd_send_signal || number == SYS_futex;
  if (waits) wait_sometimes();
  const long returned = next_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  if (waits) wait_sometimes();
  return returned;
}
