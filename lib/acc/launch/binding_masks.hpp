// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "acc/plan/cpu_binding.hpp"

namespace acc::launcher {

/// A CpuBinding as the system calls take it, made before the fork so that the child need not allocate.
class BindingMasks {
 public:
  /// Absent: changes nothing.
  explicit BindingMasks(const std::optional<CpuBinding>& binding);

  /// Binds the calling thread to the CPUs, and lets it prefer the memory of their nodes where the kernel
  /// allows that. Safe between vfork and exec. False, with errno: it may not have any of these CPUs.
  bool apply() const;

 private:
  std::vector<unsigned long> cpus_ = {};
  std::vector<unsigned long> nodes_ = {};
};

}  // namespace acc::launcher
