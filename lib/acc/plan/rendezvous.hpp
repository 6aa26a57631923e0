// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/job_shape.hpp"
#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// Where and how the nodes of the job meet: fills `plan.rendezvous`, `run_id`, `master_addr`, `master_port`,
/// `store_addresses` and `use_agent_store`, and says in `notes` what has no effect. A job of one machine
/// meets nobody, unless c10d is given a file or another machine as the endpoint: what was said is checked all
/// the same, and its own store takes the address and port of a static rendezvous, otherwise loopback and a
/// free port. Throws Error{usage}.
void plan_rendezvous(const Settings& settings, const JobShape& shape, const LaunchInputs& inputs,
                     LaunchPlan& plan);

}  // namespace acc::launcher
