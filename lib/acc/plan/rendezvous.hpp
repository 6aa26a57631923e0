// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/job_shape.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/settings.hpp"

namespace acc {

/// Where and how the nodes of the job meet: fills `plan.rendezvous`, `run_id`, `master_addr`, `master_port`
/// and `use_agent_store`, and says in `notes` what has no effect. A job of one machine meets nobody: what was
/// said is checked all the same, and its own store takes the port of a static rendezvous, otherwise a free
/// one. `random_id` is the run id of a job that has no name of its own. Throws Error{usage}.
void plan_rendezvous(const Settings& settings, const JobShape& shape, const std::string& random_id,
                     LaunchPlan& plan);

}  // namespace acc
