// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "acc/base/engine.hpp"

/// Readers of the variables of engines, for the table in engine.cpp: each completes an Engine that has its
/// name, family and job. They throw Error{usage} if a value is malformed.
namespace acc::engines {

using Number = std::optional<EngineValue<int>>;

/// The number in a variable; absent if the variable is not set, or `name` is empty.
Number read_number(const Environment& environment, std::string_view name, int min = 0);

/// Throws Error{usage}: what the engine has set is wrong.
[[noreturn]] void refuse_value(std::string_view name, std::string what);

/// `NAME=value`, for messages.
std::string assignment(const Environment& environment, std::string_view name);

/// Why the rank of a process is not known: `missing` is not there beside `found`.
Problem incomplete(const Engine& engine, const std::string& found, std::string_view missing);

// Tasks that a launcher starts, and tells their places.
void read_open_mpi(const Environment& environment, Engine& engine);
void read_hydra(const Environment& environment, Engine& engine);
void read_mvapich(const Environment& environment, Engine& engine);
void read_flux(const Environment& environment, Engine& engine);
void read_pals(const Environment& environment, Engine& engine);
void read_pmi(const Environment& environment, Engine& engine);
void read_pmix(const Environment& environment, Engine& engine);
void read_slurm_step(const Environment& environment, Engine& engine);

// Scripts of a scheduler, which run on one node of those that the job has.
void read_slurm_allocation(const Environment& environment, Engine& engine);
void read_lsf(const Environment& environment, Engine& engine);
void read_pbs(const Environment& environment, Engine& engine);
void read_grid_engine(const Environment& environment, Engine& engine);

// Containers and machines that a platform starts, each a node.
void read_worker_set(const Environment& environment, Engine& engine);
void read_indexed_job(const Environment& environment, Engine& engine);
void read_volcano(const Environment& environment, Engine& engine);
void read_sky_pilot(const Environment& environment, Engine& engine);
void read_sage_maker(const Environment& environment, Engine& engine);
void read_aws_batch(const Environment& environment, Engine& engine);
void read_pytorch_variables(const Environment& environment, Engine& engine);

}  // namespace acc::engines
