// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace acc::test {

/// A Python that has torch: the one that ACC_PEER_PYTHON names, else the active python3. Where there is none,
/// ends the test's process with 77, which CTest counts as skipped, after saying why.
std::string peer_python();

}  // namespace acc::test
