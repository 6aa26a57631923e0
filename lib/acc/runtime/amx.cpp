// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/amx.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "acc/base/text.hpp"

namespace acc {
namespace {

constexpr std::uint32_t kAmxTiles = 1U << 24U;

}  // namespace

bool may_guard_amx(const Environment& environment) {
  return parse_truth(environment.get("ACC_AMX_GUARD")).value_or(true);
}

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
