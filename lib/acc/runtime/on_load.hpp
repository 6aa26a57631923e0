// SPDX-License-Identifier: Apache-2.0
// What libacc.so does when it is loaded, before main, because the constructor of an Accelerator would be too
// late for it, and the check of LibTorch's version. README.md ("When libacc.so is loaded") lists the
// variables that switch it off.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "acc/base/environment.hpp"

namespace acc::detail {

/// What CPUID reports about AMX, the matrix unit that oneDNN uses for bfloat16.
struct AmxFeatures {
  /// Leaf 7, edx: bit 24 announces AMX tiles.
  std::uint32_t features = 0;
  /// Leaf 0x1D, sub-leaf 0, eax: the number of the highest tile palette.
  std::uint32_t palettes = 0;
};

/// Reads them from this CPU.
AmxFeatures read_amx_features();

/// True where AMX is announced but has no tile palette, as in some virtual machines: its first instruction
/// then ends the program with SIGILL.
bool amx_is_broken(const AmxFeatures& cpu);

/// Whether loading the library may keep oneDNN from broken AMX: unless ACC_AMX_GUARD says no.
bool may_guard_amx(const Environment& environment);

/// The version in the text of at::show_config(), or empty when it names none.
std::string torch_version_in(std::string_view config);

/// LibTorch has no binary compatibility between versions. Throws Error{system} when the two differ in more
/// than a local part such as `+cu130`.
void require_same_torch(std::string_view compiled, std::string_view running);

/// The same for the LibTorch that acc was built with and the one that this process loaded.
void require_compiled_torch();

}  // namespace acc::detail
