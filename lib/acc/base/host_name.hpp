// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace acc {

/// Whether `text` is an IPv6 address, perhaps with a zone: `fe80::1%eth0`.
bool is_v6_address(std::string_view text);

/// The host that the whole text names, by a name or an address; one of IPv6 may be in brackets. Absent if it
/// names none, as with a port or blanks. Looks nothing up.
std::optional<std::string> parse_host_name(std::string_view text);

}  // namespace acc
