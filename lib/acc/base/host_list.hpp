// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace acc {

/// The hosts of a list as Slurm writes it, in its order: `rack[0-1]n[09-10],login` is rack0n09 rack0n10
/// rack1n09 rack1n10 login. Padding is kept, several brackets multiply with the left one slowest, empty items
/// are skipped and duplicates stay, as in `scontrol show hostnames` of Slurm 22.05; a suffix after the last
/// bracket is accepted too. Throws Error{usage} with `where`.
std::vector<std::string> expand_host_list(std::string_view list, std::string_view where);

/// The numbers of a list with repetitions, as in SLURM_TASKS_PER_NODE: `3,1(x2)` is 3 1 1. Throws
/// Error{usage} with `where`.
std::vector<int> expand_counts(std::string_view list, std::string_view where);

}  // namespace acc
