// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <vector>

#include "acc/base/descriptor.hpp"

namespace acc::launcher {

struct Descendant {
  pid_t pid = 0;
  pid_t parent = 0;
  bool operator==(const Descendant&) const = default;
};

/// Every process below `ancestor`, parents before their children. Complete when `ancestor` is a subreaper:
/// then an orphan below it becomes its child. Costs a look at each process of the machine.
std::vector<Descendant> descendants_of(pid_t ancestor, const std::filesystem::path& proc = "/proc");

/// Sends `signal` unless the process has ended or was replaced by another of the same number. Gives a pidfd
/// that becomes readable when it ends; an empty one when nothing was sent.
Descriptor signal_descendant(const Descendant& descendant, int signal);

/// Reaps our children that have ended, as far as `is_ours` does not claim them. True: we have children left.
bool reap_orphans(const std::function<bool(pid_t)>& is_ours);

/// Kills every descendant of this process and waits until none is left. Returns whether there was one. For a
/// subreaper that waits for nothing else.
bool kill_descendants();

}  // namespace acc::launcher
