// SPDX-License-Identifier: Apache-2.0
#include "acc/control/thread_wait.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/control/process_table.hpp"
#include "acc/control/rank_usage.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

ThreadWait read_thread(const fs::path& folder, const ProcessStat& stat) {
  ThreadWait thread{.id = stat.pid, .name = stat.name, .state = stat.state};
  thread.kernel = first_line_of(folder / "wchan");
  if (thread.kernel == "0") thread.kernel.clear();
  // `202 0x... ...`, or `running`, or `-1 ...` outside a call.
  const std::string line = first_line_of(folder / "syscall");
  const auto number = parse_integer(std::string_view(line).substr(0, line.find(' ')));
  if (number && *number >= 0) thread.call = name_of_call(static_cast<long>(*number));
  return thread;
}

}  // namespace

std::vector<ThreadWait> threads_of(pid_t pid, const fs::path& proc) {
  std::vector<ThreadWait> threads;
  const fs::path tasks = proc / std::to_string(pid) / "task";
  std::error_code error;
  for (fs::directory_iterator entry(tasks, error), end; !error && entry != end; entry.increment(error)) {
    const auto id = parse_integer(entry->path().filename().native());
    const auto stat = id ? read_process(static_cast<pid_t>(*id), tasks) : std::nullopt;
    if (stat) threads.push_back(read_thread(entry->path(), *stat));
  }
  std::ranges::sort(threads, {},
                    [&](const ThreadWait& thread) { return std::pair(thread.id != pid, thread.id); });
  return threads;
}

std::string to_string(const ThreadWait& thread) {
  std::string text = state_in_words(thread.state);
  if (thread.state != 'S' && thread.state != 'D') return text;
  if (!thread.call.empty()) text += " in " + thread.call;
  if (!thread.kernel.empty())
    text += thread.call.empty() ? " in " + thread.kernel : " (" + thread.kernel + ")";
  return text;
}

std::string name_of_call(long number) {
  static const std::map<long, std::string> names = {
#define ACC_CALL(name) {SYS_##name, #name}
      ACC_CALL(read),        ACC_CALL(write),           ACC_CALL(readv),           ACC_CALL(writev),
      ACC_CALL(pread64),     ACC_CALL(pwrite64),        ACC_CALL(fsync),           ACC_CALL(openat),
      ACC_CALL(ioctl),       ACC_CALL(futex),           ACC_CALL(ppoll),           ACC_CALL(pselect6),
      ACC_CALL(epoll_pwait), ACC_CALL(nanosleep),       ACC_CALL(clock_nanosleep), ACC_CALL(connect),
      ACC_CALL(accept),      ACC_CALL(accept4),         ACC_CALL(recvfrom),        ACC_CALL(recvmsg),
      ACC_CALL(sendto),      ACC_CALL(sendmsg),         ACC_CALL(wait4),           ACC_CALL(waitid),
      ACC_CALL(flock),       ACC_CALL(rt_sigtimedwait), ACC_CALL(rt_sigsuspend),
#ifdef SYS_poll  // of older machines
      ACC_CALL(poll),        ACC_CALL(select),          ACC_CALL(epoll_wait),      ACC_CALL(pause),
      ACC_CALL(open),
#endif
#undef ACC_CALL
  };
  const auto found = names.find(number);
  return found == names.end() ? "system call " + std::to_string(number) : found->second;
}

}  // namespace acc::launcher
