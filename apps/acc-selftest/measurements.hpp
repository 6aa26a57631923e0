// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/runtime/accelerator.hpp"
#include "report.hpp"

namespace acc::selftest {

/// Together: what each process says, in rank order. At most 255 bytes of it.
std::vector<std::string> gather_texts(Accelerator& accelerator, const std::string& text);

/// Together: each pair of ranks talks to each other alone. Throws Error{system} that names the pair which
/// does not reach each other.
std::vector<Link> measure_links(Accelerator& accelerator);

/// Together: sums over all processes by size; none on one process.
std::vector<AllReduce> measure_all_reduce(Accelerator& accelerator);

/// Together: all ranks multiply at the same time, as in a training.
std::vector<Compute> measure_matmul(Accelerator& accelerator);

}  // namespace acc::selftest
