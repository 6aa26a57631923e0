// SPDX-License-Identifier: Apache-2.0
// What libacc.so does when it is loaded, because it must happen before an Accelerator is constructed, and the
// check of LibTorch's version. README.md ("When libacc.so is loaded") lists the variables that switch it off.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "acc/base/environment.hpp"

namespace acc::detail {

/// What CPUID reports about AMX, the matrix unit that oneDNN uses for bfloat16.
struct AmxFeatures {
  /// Leaf 7, sub-leaf 0, edx: bit 24 is set if there are AMX tiles.
  std::uint32_t features = 0;
  /// Leaf 0x1D, sub-leaf 0, eax: the number of the highest tile palette.
  std::uint32_t palettes = 0;
};

/// Reads the features of this CPU.
AmxFeatures read_amx_features();

/// True if the CPU reports AMX but no tile palette, as in some virtual machines: the first AMX instruction
/// would end the program with SIGILL.
bool amx_is_broken(const AmxFeatures& cpu);

/// Whether loading the library may keep oneDNN from using broken AMX: true unless ACC_AMX_GUARD is false.
bool may_guard_amx(const Environment& environment);

/// The version in the text of at::show_config(); empty if it has none.
std::string torch_version_in(std::string_view config);

/// Throws Error{system} when the two versions differ in more than a local part such as `+cu130`: versions of
/// LibTorch are not binary compatible.
void require_same_torch(std::string_view compiled, std::string_view running);

/// The same for the LibTorch with which acc was built and the one that this process has loaded.
void require_compiled_torch();

}  // namespace acc::detail
