// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "acc/runtime/comm/cuda_plugin.hpp"
#include "acc/runtime/trainer/trainer_state.hpp"

namespace acc::detail {

/// The resident memory of this process.
MemoryUse process_memory();

/// Makes now the begin of process_memory's peak. Returns false where the kernel cannot.
bool reset_process_peak();

/// transformers' TrainerMemoryTracker: what stages of a training do to the resident memory of this process
/// and to the memory of tensors on its CUDA device, in bytes. The first stage is `init`; it begins with the
/// tracker, and its numbers are added to those of the next. A stage within another one has no numbers.
class MemoryTracker {
 public:
  /// If not `on`, no stage has numbers.
  explicit MemoryTracker(bool on);

  /// Ends `init`. The memory of `device` counts, too, if it is a CUDA device.
  void end_init(const c10::Device& device);

  /// Ends a stage that has not ended, as when what it consisted of threw.
  class [[nodiscard]] Stage {
   public:
    Stage(MemoryTracker& tracker, bool is_nested) : tracker_(tracker), is_nested_(is_nested) {
      if (is_nested_) ++tracker_.num_nested_;
    }
    ~Stage() {
      if (is_nested_) {
        --tracker_.num_nested_;
      } else {
        tracker_.active_.clear();
      }
    }
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

   private:
    MemoryTracker& tracker_;
    bool is_nested_;
  };

  /// Begins a stage, unless another one is under way.
  Stage begin(const std::string& name);

  /// Adds `<name>_mem_cpu_alloc_delta`, how much more there is than at the begin, and
  /// `<name>_mem_cpu_peaked_delta`, how much more than now there was at most, and the same with `gpu`. Does
  /// nothing if this stage is not under way.
  void end(const std::string& name, Metrics& metrics);

 private:
  // Of the memory of one kind.
  struct Change {
    std::int64_t before = 0;
    std::int64_t allocated = 0;
    // Absent if the peak of the stage is not known.
    std::optional<std::int64_t> peaked = {};
  };
  struct Begin {
    MemoryUse use = {};
    bool is_reset = false;
  };
  using Changes = std::map<std::string, Change>;  // by the kind

  static Change change_since(const Begin& begin, const MemoryUse& now);
  static void add(const std::string& stage, const Changes& changes, Metrics& metrics);
  void begin_stage(const std::string& name);
  Changes end_stage();

  bool on_;
  std::optional<c10::DeviceIndex> device_ = {};
  std::string active_ = {};
  int num_nested_ = 0;  // the stages within it that are under way
  Begin process_begin_ = {};
  Begin device_begin_ = {};
  // Until it has been added to a stage.
  std::optional<Changes> init_ = {};
};

}  // namespace acc::detail
