// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DeviceType.h>

#include <filesystem>
#include <functional>

namespace acc {

/// The options of a profile: accelerate's ProfileKwargs.
struct ProfileOptions {
  /// Where each process writes its trace, `profile_<rank>.json`. Empty: nothing is written.
  std::filesystem::path output_trace_dir = {};
  bool record_shapes = false;
  bool profile_memory = false;
  bool with_flops = false;
};

/// Calls `act` under LibTorch's profiler, which also watches the kernels of `device`, and writes a trace that
/// chrome://tracing and Perfetto open to `file` (empty: none). Exceptions of `act` pass through, without a
/// trace. Throws Error{system} when the file cannot be written.
void profile_to(const std::filesystem::path& file, const ProfileOptions& options, c10::DeviceType device,
                const std::function<void()>& act);

}  // namespace acc
