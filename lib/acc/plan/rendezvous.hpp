// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/plan/job_shape.hpp"
#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/rendezvous_plan.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// Plans the rendezvous: sets `plan.rendezvous`, `run_id`, `master_addr`, `master_port`, `store_addresses`
/// and `use_agent_store`, and adds a note for each setting without effect. A job on one machine has no
/// rendezvous, unless the endpoint of c10d is a file or another machine. Its settings are validated all the
/// same; its store uses the address and port of a static rendezvous, else loopback and a free port. Throws
/// Error{usage}.
void plan_rendezvous(const Settings& settings, const JobShape& shape, const LaunchInputs& inputs,
                     LaunchPlan& plan);

/// The host of machine 0 (main_process_ip). Throws Error{usage} if what is given names none.
std::string main_process_host(const Settings& settings, Dialect dialect);

/// The address given for the store of a job on one machine.
struct NamedAddress {
  std::string host = {};
  /// A flag, a variable, or `file:line`.
  std::string origin = {};
  /// Whether the job is refused if the address belongs to another machine; otherwise it uses loopback.
  bool binding = true;
};

/// Sets the address of the workers' store and where it listens. If the address belongs to another machine,
/// torchrun's static rendezvous would wait for it until its timeout, so the plan gets a problem;
/// accelerate, and torchrun with other back ends, ignore the address, so loopback replaces it and the plan
/// gets a note.
void plan_master_address(const NamedAddress& address, const LaunchInputs& inputs, LaunchPlan& plan);

/// Applies `--rdzv-conf` (`key=value,key=value`, the keys of torchrun 2.11) to `plan`, whose back end is
/// set. Adds a note for each key that this back end does not use. Throws Error{usage} with `where` and all
/// errors: invalid values, unknown keys with the nearest known one, and keys that have a flag.
void apply_rdzv_conf(std::string_view text, const std::string& where, RendezvousPlan& plan,
                     std::vector<std::string>& notes);

}  // namespace acc::launcher
