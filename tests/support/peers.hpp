// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace acc::test {

/// A Python with torch: that of ACC_PEER_PYTHON, else the active python3. If there is none, prints why and
/// exits with 77, which CTest counts as skipped.
std::string peer_python();

}  // namespace acc::test
