// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string_view>

namespace acc {

/// The files of a zip archive by name; the views point into the archive.
using ZipEntries = std::map<std::string_view, std::string_view, std::less<>>;

/// Lists the files of a zip or zip64 archive that is in memory; the result points into `archive`. Every
/// offset and size is checked against the size of the archive. The data() of a file that is compressed or
/// encrypted is null. Throws Error{config} when `archive` is not a zip archive or is truncated.
ZipEntries read_zip(std::string_view archive);

}  // namespace acc
