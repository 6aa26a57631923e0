// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/runtime/accelerator/accelerator.hpp"
#include "report.hpp"

namespace acc::selftest {

/// Together: the texts of all processes in rank order, at most 255 bytes of each.
std::vector<std::string> gather_texts(Accelerator& accelerator, const std::string& text);

/// Together: measures each pair of ranks while no other traffic uses their connection. Throws Error{system}
/// naming a pair that cannot reach each other.
std::vector<Link> measure_links(Accelerator& accelerator);

/// Together: measures an all-reduce of several sizes; none on one process.
std::vector<AllReduce> measure_all_reduce(Accelerator& accelerator);

/// Together: measures on all ranks at the same time a copy in the memory of their device, of which little
/// fits in caches.
std::vector<Copy> measure_copy(Accelerator& accelerator);

/// Together: measures a matrix multiplication on all ranks at the same time, as in training.
std::vector<Compute> measure_matmul(Accelerator& accelerator);

}  // namespace acc::selftest
