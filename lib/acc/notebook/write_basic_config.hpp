// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace acc {

/// Writes the config file for this machine that `acc launch` reads, one process per visible GPU or one on the
/// CPU, and returns its path: accelerate's write_basic_config. `mixed_precision` is no, fp16, bf16 or fp8 in
/// any case; `save_location` empty stands for the default config file, and its folder is made. Where there is
/// such a file already, says so on standard output and returns nullopt. Throws Error{usage} for another
/// precision, Error{system} when the file cannot be written.
std::optional<std::filesystem::path> write_basic_config(std::string_view mixed_precision = "no",
                                                        const std::filesystem::path& save_location = {});

}  // namespace acc
