// SPDX-License-Identifier: Apache-2.0
#include "acc/base/limit_hint.hpp"

#include <cerrno>

namespace acc {

std::string limit_hint(int error_number) {
  switch (error_number) {
    case EMFILE:
      return "raise the limit of open files: ulimit -n";
    case ENFILE:
      return "the whole system has too many open files: sysctl fs.file-max";
    case EAGAIN:
      return "raise the limit of processes: ulimit -u, or pids.max of the cgroup";
    default:
      return "";
  }
}

}  // namespace acc
