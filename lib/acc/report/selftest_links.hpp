// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/report/selftest_results.hpp"

namespace acc::launcher {

/// The links between ranks as two matrices, and the slowest of them as a table; a sentence for two ranks,
/// empty for one.
std::string links_section(const SelftestResults& results);

}  // namespace acc::launcher
