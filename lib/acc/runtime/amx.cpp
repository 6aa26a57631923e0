// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/amx.hpp"

#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace acc {
namespace {

constexpr std::uint32_t kAmxTiles = 1U << 24U;

// Runs when the library is loaded: oneDNN reads the variable at its first use and never again.
[[gnu::constructor]] void keep_onednn_from_broken_amx() {
  if (amx_is_broken(ask_amx())) ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", 0);
}

}  // namespace

bool amx_is_broken(const AmxAnswer& answer) {
  return (answer.features & kAmxTiles) != 0 && answer.palettes == 0;
}

AmxAnswer ask_amx() {
  AmxAnswer answer;
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) answer.features = edx;
  if (__get_cpuid_count(0x1d, 0, &eax, &ebx, &ecx, &edx) != 0) answer.palettes = eax;
#endif
  return answer;
}

}  // namespace acc
