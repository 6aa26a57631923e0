// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "acc/config/read.hpp"

namespace acc {

/// `text`, the text of a config file, changed so that it says `values`: comments stay, keys keep their order
/// and their lines where their values do, and new ones come last. What cannot be edited so (a mapping in
/// braces, anchors) is written anew, as format_config() does.
std::string edited_config(std::string_view text, const ConfigValues& values,
                          const std::filesystem::path& file);

/// The same for a mapping whose keys are taken as they are written, whatever they mean.
std::string edited_document(std::string_view text, const Value& wanted, const std::filesystem::path& file);

/// Edits the file in one step; writes it where it is missing. Throws Error{config} when it cannot be read as
/// a config file, Error{system} when it cannot be written.
void edit_config(const ConfigValues& values, const std::filesystem::path& file);

}  // namespace acc
