// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string_view>

namespace acc {

/// The bytes of a zip archive's files, by name.
using ZipEntries = std::map<std::string_view, std::string_view, std::less<>>;

/// The files in a zip archive that is in memory, with 64-bit sizes too; the result refers to `archive`. Every
/// number is checked against the bytes that there are. A file that is compressed or encrypted has no bytes:
/// its data() is null. Throws Error{config} saying what is wrong: no archive or one that is cut.
ZipEntries read_zip(std::string_view archive);

}  // namespace acc
