// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/memory_tracker.hpp"

#include <fcntl.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"

namespace acc::detail {
namespace {

// A line such as "VmRSS:      1234 kB".
std::int64_t bytes_in(const std::string& status, std::string_view name) {
  const std::size_t line = status.find(name);
  if (line == std::string::npos) return 0;
  const std::size_t begin = line + name.size();
  const std::size_t end = status.find(" kB", begin);
  return parse_integer(trim(std::string_view(status).substr(begin, end - begin))).value_or(0) << 10;
}

}  // namespace

MemoryUse process_memory() {
  const std::string status = text_of_kernel("/proc/self/status");
  return {.bytes = bytes_in(status, "\nVmRSS:"), .peak = bytes_in(status, "\nVmHWM:")};
}

bool reset_process_peak() {
  const Descriptor file(::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC));
  return file && write_all(file.get(), "5");
}

MemoryTracker::MemoryTracker(bool on) : on_(on) {
  if (on_) begin_stage("init");
}

void MemoryTracker::end_init(const c10::Device& device) {
  if (!on_) return;
  init_ = end_stage();
  if (!device.is_cuda()) return;
  device_ = device.index();
  // Until now nothing of the Trainer was there.
  init_->emplace("gpu", Change{.before = cuda_table().allocated_memory(*device_).bytes, .peaked = 0});
}

MemoryTracker::Stage MemoryTracker::begin(const std::string& name) {
  const bool is_nested = !active_.empty();
  if (on_ && !is_nested) begin_stage(name);
  return {*this, is_nested};
}

void MemoryTracker::end(const std::string& name, Metrics& metrics) {
  if (active_ != name || num_nested_ > 0) return;
  const Changes changes = end_stage();
  if (const auto init = std::exchange(init_, {})) {
    add("init", *init, metrics);
    for (const auto& [kind, change] : *init) metrics["before_init_mem_" + kind] = double(change.before);
  }
  add(name, changes, metrics);
}

void MemoryTracker::begin_stage(const std::string& name) {
  active_ = name;
  if (device_) {
    cuda_table().empty_cache();
    cuda_table().reset_peak_memory(*device_);
    device_begin_ = {.use = cuda_table().allocated_memory(*device_), .is_reset = true};
  }
  const bool is_reset = reset_process_peak();
  process_begin_ = {.use = process_memory(), .is_reset = is_reset};
}

MemoryTracker::Changes MemoryTracker::end_stage() {
  active_.clear();
  Changes changes;
  if (device_) {
    cuda_table().empty_cache();
    changes.emplace("gpu", change_since(device_begin_, cuda_table().allocated_memory(*device_)));
  }
  changes.emplace("cpu", change_since(process_begin_, process_memory()));
  return changes;
}

MemoryTracker::Change MemoryTracker::change_since(const Begin& begin, const MemoryUse& now) {
  Change change{.before = begin.use.bytes, .allocated = now.bytes - begin.use.bytes};
  // A peak that cannot be reset is that of the stage if it has risen.
  if (begin.is_reset || now.peak > begin.use.peak)
    change.peaked = std::max<std::int64_t>(0, now.peak - now.bytes);
  return change;
}

void MemoryTracker::add(const std::string& stage, const Changes& changes, Metrics& metrics) {
  for (const auto& [kind, change] : changes) {
    const std::string prefix = stage + "_mem_" + kind;
    metrics[prefix + "_alloc_delta"] = double(change.allocated);
    if (change.peaked) metrics[prefix + "_peaked_delta"] = double(*change.peaked);
  }
}

}  // namespace acc::detail
