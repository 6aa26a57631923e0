// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// The address that was named for the store of a job on one machine.
struct NamedAddress {
  std::string host = {};
  /// A flag, a variable, or `file:line`.
  std::string origin = {};
  /// Whether a job is refused when the address is another machine's; otherwise it takes loopback.
  bool binding = true;
};

/// Sets where workers meet and where their store listens. An address of another machine: torchrun's static
/// rendezvous waits for it until its time is over, which is a problem of the plan here; accelerate, and
/// torchrun with the other back ends, do not look at it, so loopback takes its place and a note says so.
void plan_master_address(const NamedAddress& named, const LaunchInputs& inputs, LaunchPlan& plan);

}  // namespace acc::launcher
