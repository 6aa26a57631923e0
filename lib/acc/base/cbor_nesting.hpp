// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace acc {

/// Whether arrays, maps and parts of texts in a value in CBOR are nested so deeply that the JSON library,
/// which reads them by recursion, could use up the stack.
bool is_deeply_nested_cbor(std::string_view cbor);

}  // namespace acc
