// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <functional>

namespace acc {

/// The options of profiling, as accelerate's ProfileKwargs.
struct ProfileOptions {
  /// The folder to which each process writes its trace `profile_<rank>.json`. Empty: no traces are written.
  std::filesystem::path output_trace_dir = {};
  bool record_shapes = false;   ///< Records the shapes of operations' inputs.
  bool profile_memory = false;  ///< Records allocations.
  bool with_flops = false;      ///< Estimates the floating-point operations.
};

/// Calls `function` under LibTorch's profiler, which also records the kernels of `device`, and writes a trace
/// for chrome://tracing and Perfetto to `file`, unless that is empty. Exceptions of `function` pass through,
/// without a trace. Throws Error{system} when the file cannot be written.
void profile_to(const std::filesystem::path& file, const ProfileOptions& options, c10::Device device,
                const std::function<void()>& function);

}  // namespace acc
