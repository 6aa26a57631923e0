// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/on_load.hpp"

#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/version.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/comm/cuda_plugin.hpp"
#include "acc/runtime/comm/device_choice.hpp"

namespace acc::detail {
namespace {

constexpr std::uint32_t kAmxTiles = 1U << 24U;

std::string_view without_local_part(std::string_view version) {
  return version.substr(0, version.find('+'));
}

// oneDNN reads the variable once, at its first kernel. A value that the user set is kept.
void limit_onednn_where_amx_is_broken(const Environment& environment) {
  if (may_guard_amx(environment) && amx_is_broken(read_amx_features()))
    ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", /*overwrite=*/0);
}

// LibTorch looks for CUDA once, at the first seed or backward: its CUDA libraries must be loaded before.
void load_cuda_where_there_is_a_driver(const Environment& environment) {
  if (may_load_cuda(environment, find_cuda_driver())) use_cuda_plugin_beside_library();
}

[[gnu::constructor]] void on_load() {
  const Environment environment = Environment::of_process();
  limit_onednn_where_amx_is_broken(environment);
  load_cuda_where_there_is_a_driver(environment);
}

}  // namespace

bool may_guard_amx(const Environment& environment) {
  return parse_truth(environment.get("ACC_AMX_GUARD")).value_or(true);
}

bool amx_is_broken(const AmxFeatures& cpu) {
  return (cpu.features & kAmxTiles) != 0 && cpu.palettes == 0;
}

AmxFeatures read_amx_features() {
  AmxFeatures cpu;
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) cpu.features = edx;
  if (__get_cpuid_count(0x1d, 0, &eax, &ebx, &ecx, &edx) != 0) cpu.palettes = eax;
#endif
  return cpu;
}

std::string torch_version_in(std::string_view config) {
  constexpr std::string_view kName = "TORCH_VERSION=";
  const std::size_t at = config.find(kName);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = config.substr(at + kName.size());
  return std::string(rest.substr(0, rest.find_first_of(", \n")));
}

void require_same_torch(std::string_view compiled, std::string_view running) {
  if (without_local_part(compiled) == without_local_part(running)) return;
  throw Error({.kind = ErrorKind::system,
               .what = fmt::format("was built for LibTorch {} but runs with {}", compiled,
                                   running.empty() ? "one of unknown version" : running),
               .where = "libacc.so",
               .hint = "build acc with the LibTorch that is used"});
}

void require_compiled_torch() {
  static const std::string running = torch_version_in(at::show_config());
  require_same_torch(TORCH_VERSION, running);
}

}  // namespace acc::detail
