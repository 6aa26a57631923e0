// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"

namespace acc::launcher {

/// `text`, the text of a config file, changed so that it says `values`: comments stay, keys keep their order
/// and their lines where their values do, and new ones come last. What cannot be edited so (a mapping in
/// braces, anchors) is written anew, as format_config() does.
std::string edited_config(std::string_view text, const ConfigValues& values,
                          const std::filesystem::path& file);

/// The row whose key a key of a section is called by in the values; null: it is taken as it is written. What
/// stands at the top level is in the section "".
using RowOf = std::function<const SettingSpec*(std::string_view section, std::string_view key)>;

/// The same for any mapping. A key with a row keeps its place and its comment under the row's name.
std::string edited_document(std::string_view text, const Value& wanted, const std::filesystem::path& file,
                            const RowOf& row_of);

/// Edits the file in one step; writes it where it is missing. Throws Error{config} when it cannot be read as
/// a config file, Error{system} when it cannot be written.
void edit_config(const ConfigValues& values, const std::filesystem::path& file);

}  // namespace acc::launcher
