// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace acc::test {

/// If the variable ACC_TEST_SECONDS is set: when this process lives so long, standard error has its stack,
/// and in which system call each of its threads and of its descendants waits. CTest ends it some seconds
/// later. Uses SIGALRM.
void report_hang();

}  // namespace acc::test
