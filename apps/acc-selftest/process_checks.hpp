// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checks.hpp"

namespace acc::selftest {

/// on_main_process and its like run a function exactly where they say.
Complaint check_where_functions_run(Accelerator& accelerator);

/// split_between_processes gives each process its part of lists, maps and tensors, also where it does not
/// divide.
Complaint check_splitting(Accelerator& accelerator);

/// What one process sets all see, once.
Complaint check_trigger(Accelerator& accelerator);

}  // namespace acc::selftest
