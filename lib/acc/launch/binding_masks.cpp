// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/binding_masks.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cstddef>

namespace acc::launcher {
namespace {

constexpr std::size_t kWordBits = sizeof(unsigned long) * 8;

// Bit n stands for CPU or node n.
std::vector<unsigned long> to_mask(const std::vector<int>& numbers) {
  std::vector<unsigned long> mask;
  for (const int number : numbers) {
    const auto bit = static_cast<std::size_t>(number);
    if (mask.size() <= bit / kWordBits) mask.resize(bit / kWordBits + 1);
    mask[bit / kWordBits] |= 1UL << (bit % kWordBits);
  }
  return mask;
}

}  // namespace

BindingMasks::BindingMasks(const std::optional<CpuBinding>& binding) {
  if (!binding) return;
  cpus_ = to_mask(binding->cpus);
  nodes_ = to_mask(binding->numa_nodes);
}

bool BindingMasks::apply() const {
  if (cpus_.empty()) return true;
  if (::syscall(SYS_sched_setaffinity, 0, cpus_.size() * sizeof cpus_[0], cpus_.data()) < 0) return false;
  int nodes = 0;
  for (const unsigned long word : nodes_) nodes += std::popcount(word);
  // Preferred, not bound: a node that is full must not end a training. Containers often refuse the call;
  // memory then comes from the CPUs' own node first all the same. The kernel reads one bit less than it is
  // told.
  ::syscall(SYS_set_mempolicy, nodes > 1 ? MPOL_PREFERRED_MANY : MPOL_PREFERRED, nodes_.data(),
            nodes_.size() * kWordBits + 1);
  return true;
}

}  // namespace acc::launcher
