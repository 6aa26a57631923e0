// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/accelerator/profile.hpp"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/cuda_plugin.hpp"

namespace acc {
namespace {

namespace profiler = torch::autograd::profiler;
namespace impl = torch::profiler::impl;

// Records from construction until stop().
class Recording {
 public:
  Recording(const ProfileOptions& options, c10::Device device) {
    const impl::ProfilerConfig config(impl::ProfilerState::KINETO, options.record_shapes,
                                      options.profile_memory,
                                      /*with_stack=*/false, options.with_flops);
    std::set<impl::ActivityType> activities{impl::ActivityType::CPU};
    if (device.is_cuda()) activities.insert(impl::ActivityType::CUDA);
    profiler::prepareProfiler(config, activities);
    profiler::enableProfiler(config, activities);
  }
  ~Recording() {
    if (running_) profiler::disableProfiler();
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  std::unique_ptr<profiler::ProfilerResult> stop() {
    running_ = false;
    return profiler::disableProfiler();
  }

 private:
  bool running_ = true;
};

// Called before anything is recorded: if LibTorch's profiler cannot open its file, it only logs that, and
// corrupts the heap (seen in 2.11).
void require_writable(const std::filesystem::path& file) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  const bool is_new = !std::filesystem::exists(file, error);
  if (std::ofstream(file, std::ios::app)) {
    if (is_new) std::filesystem::remove(file, error);
    return;
  }
  throw Error({.kind = ErrorKind::system,
               .what = std::string("the trace cannot be written: ") + std::strerror(errno),
               .where = file.string()});
}

}  // namespace

void profile_to(const std::filesystem::path& file, const ProfileOptions& options, c10::Device device,
                const std::function<void()>& function) {
  if (!file.empty()) require_writable(file);
  Recording recording(options, device);
  function();
  // What the function has started there belongs to the trace.
  if (device.is_cuda()) detail::cuda_table().synchronize(device.index());
  const auto result = recording.stop();
  if (!file.empty()) result->save(file.string());
}

}  // namespace acc
