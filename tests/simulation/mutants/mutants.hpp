// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace simulation {

/// The faults in the copies of sources that the scripts beside this file write.
extern const std::vector<std::string> kMutants;

/// Which of them is there: its number from 1 on. 0: none.
inline int mutant = 0;

}  // namespace simulation
