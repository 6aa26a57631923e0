// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/weights/memory_estimate.hpp"

namespace acc::launcher {

/// `417.65 MB`, `1.0 KB`, `1023 bytes`: divided by 1024 and rounded to two decimals, as Python writes them.
std::string size_text(double bytes);

/// A table in a frame, drawn as accelerate draws it: every text centred, the title over all columns.
/// Ends with a newline.
std::string framed_table(const std::string& title, const std::vector<std::string>& headers,
                         const std::vector<std::vector<std::string>>& rows);

/// accelerate's table for the model, a row for each of `dtypes` (float32, float16, int8, int4).
std::string estimate_table(const std::string& model, const ModelSize& size,
                           const std::vector<std::string>& dtypes);

}  // namespace acc::launcher
