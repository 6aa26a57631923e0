// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "acc/base/environment.hpp"

namespace acc {

/// What CPUID says about AMX, the matrix unit that oneDNN uses for bfloat16.
struct AmxAnswer {
  /// Leaf 7, edx: bit 24 announces AMX tiles.
  std::uint32_t features = 0;
  /// Leaf 0x1D, sub-leaf 0, eax: the number of the highest tile palette.
  std::uint32_t palettes = 0;
};

/// True where AMX is announced but has no tile palette, as in some virtual machines: its first instruction
/// then ends the program with SIGILL.
bool amx_is_broken(const AmxAnswer& answer);

/// Whether loading the library may keep oneDNN from broken AMX: unless ACC_AMX_GUARD says no.
bool may_guard_amx(const Environment& environment);

/// Asks this CPU.
AmxAnswer ask_amx();

}  // namespace acc
