// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// torchrun's text for `--tee` and `--redirects`: `0` to `3`, or `RANK:N,RANK:N` (ranks may have several
/// digits, the last entry of a rank wins). Throws Error{usage} with `where`.
StreamMap parse_stream_map(std::string_view text, const std::string& where);

/// `0,2,5` or `0-3,8`; empty: no filter. Throws Error{usage} with `where`.
std::vector<int> parse_ranks(std::string_view text, const std::string& where);

/// Words separated by commas, where `,,` is a comma inside a word; empty ones do not count.
std::vector<std::string> parse_words(std::string_view text);

}  // namespace acc::launcher
