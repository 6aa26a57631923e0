// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"

namespace acc::launcher {

/// Changes the text of a config file to contain `values`, as PyYAML reads them, too: `gpu_ids: 1` is a number
/// there. Comments, the order of keys, line ends and the lines of unchanged values stay; new keys come last.
/// A file that cannot be edited by lines (mappings in braces, anchors) is rewritten by format_config().
std::string edited_config(std::string_view text, const ConfigValues& values,
                          const std::filesystem::path& file);

/// Maps a key of a document to the setting under whose name the values contain it; null: the key itself.
/// The top level is the section "".
using RowOf = std::function<const SettingSpec*(std::string_view section, std::string_view key)>;

/// The same for any mapping. A key that `row_of` maps is renamed and keeps its position and comment.
std::string edited_document(std::string_view text, const Value& target, const std::filesystem::path& file,
                            const RowOf& row_of);

/// Edits a config file atomically, or creates it. False: it could not be edited by lines, and was written
/// anew without the comments that it had. Throws Error{config} if it cannot be parsed, Error{system} if it
/// cannot be written.
bool edit_config(const ConfigValues& values, const std::filesystem::path& file);

}  // namespace acc::launcher
