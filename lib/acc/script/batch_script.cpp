// SPDX-License-Identifier: Apache-2.0
#include "acc/script/batch_script.hpp"

#include <fmt/format.h>

#include <string_view>

#include "acc/script/script_words.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kSlurmHead = R"(#!/bin/bash
# A job for Slurm, printed by
#   {typed}
# Submit it in the same folder: sbatch FILE. A line that begins with ## is a suggestion, which counts without
# the first #.
#SBATCH --job-name={name}
#SBATCH --nodes={nodes}
# One acc per node. It starts the workers.
#SBATCH --ntasks-per-node=1
)";

constexpr std::string_view kSlurmRange = R"(# The job goes on with fewer nodes when some are lost.
#SBATCH --no-kill
)";

constexpr std::string_view kSlurmResources =
    R"(# CPUs of a node, for all of its workers and the threads that load their data.
#SBATCH --cpus-per-task={cpus}
##SBATCH --mem=0
##SBATCH --time=1-00:00:00
##SBATCH --partition=NAME
##SBATCH --account=NAME
# The output of all starts of the job in one file.
#SBATCH --output=%x-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
# Notice of the time limit, for workers that handle the signal: they save a checkpoint.
{notice}#SBATCH --signal=USR1@300

)";

// A plain srun takes no --cpus-per-task from the script since Slurm 22.05.
constexpr std::string_view kSlurmCommand = R"(
# acc itself ends the job when a node fails, and says which.
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" --kill-on-bad-exit=0{no_kill} \
  {command}
code=$?

# With this code acc asks for another start. Where slurm.conf has RequeueExit=75, Slurm does the same.
if [[ $code -eq 75 && ${{SLURM_RESTART_COUNT:-0}} -lt 10 ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
)";

constexpr std::string_view kPbsHead = R"(#!/bin/bash
# A job for PBS Professional or OpenPBS, printed by
#   {typed}
# Submit it in the same folder: qsub FILE. A line that begins with ## is a suggestion, which counts without
# the first #.
#PBS -N {name}
# One acc per node. It starts the workers, which share the CPUs with the threads that load their data.
#PBS -l select={nodes}:ncpus={cpus}:mpiprocs=1{gpus}
#PBS -l place=scatter
{remark}##PBS -l walltime=24:00:00
##PBS -q QUEUE
##PBS -A ACCOUNT
#PBS -j oe
# With the environment of qsub.
#PBS -V

cd "$PBS_O_WORKDIR" || exit
)";

constexpr std::string_view kPbsMpirun = R"(
# Open MPI kills one second after it asked the processes to end, unless it is told to wait.
export OMPI_MCA_odls_base_sigkill_timeout={grace} PRTE_MCA_odls_base_sigkill_timeout={grace}

# Open MPI's mpirun starts acc on each node: through PBS where it was built for it, else over ssh. That of
# MPICH and Intel MPI: mpirun -ppn 1.
mpirun --hostfile "$PBS_NODEFILE" -np {nodes} --map-by ppr:1:node --bind-to none \
  )";

constexpr std::string_view kPbsEnd = R"(
code=$?

# With 75 acc asks for another start, which PBS does not give by exit code: submit the job again.
exit "$code"
)";

constexpr std::string_view kSetup =
    "# Here: modules, the Python environment, variables such as NCCL_SOCKET_IFNAME.\n";

std::string exports(const ScriptJob& job) {
  std::string lines;
  for (const auto& [name, value] : job.environment.variables())
    lines += fmt::format("export {}={}\n", name, bash_word(value));
  return lines;
}

std::string slurm_gpus(const ScriptJob& job) {
  if (job.gpus_per_node > 0) return fmt::format("#SBATCH --gpus-per-node={}\n", job.gpus_per_node);
  if (!job.may_use_gpus) return {};
  return fmt::format(
      "# The machine where this was printed has no GPU. One per worker:\n##SBATCH --gpus-per-node={}\n",
      job.workers_per_node);
}

std::string pbs_remark(const ScriptJob& job) {
  if (!job.may_use_gpus) return {};
  return fmt::format("# The machine where this was printed has no GPU. One per worker: select=...:ngpus={}\n",
                     job.workers_per_node);
}

}  // namespace

std::string slurm_script(const ScriptJob& job) {
  using fmt::arg;
  const bool is_range = job.min_nodes != job.nodes;
  std::string text = fmt::format(kSlurmHead, arg("typed", bash_command(job.typed)), arg("name", job.name),
                                 arg("nodes", job.nodes));
  if (is_range) text += kSlurmRange;
  text += slurm_gpus(job);
  text += fmt::format(kSlurmResources, arg("cpus", job.cpus_per_node),
                      arg("notice", job.requeues_on_preemption ? "" : "#"));
  text += kSetup;
  text += exports(job);
  text += fmt::format(kSlurmCommand, arg("no_kill", is_range ? " --no-kill" : ""),
                      arg("command", bash_command(job.words)));
  return text;
}

std::string pbs_script(const ScriptJob& job) {
  using fmt::arg;
  const std::string gpus = job.gpus_per_node > 0 ? fmt::format(":ngpus={}", job.gpus_per_node) : "";
  std::string text = fmt::format(kPbsHead, arg("typed", bash_command(job.typed)), arg("name", job.name),
                                 arg("nodes", job.nodes), arg("cpus", job.cpus_per_node), arg("gpus", gpus),
                                 arg("remark", pbs_remark(job)));
  text += kSetup;
  text += exports(job);
  text += job.nodes == 1 ? "\n"
                         : fmt::format(kPbsMpirun, arg("grace", job.grace_seconds), arg("nodes", job.nodes));
  text += bash_command(job.words);
  text += kPbsEnd;
  return text;
}

}  // namespace acc::launcher
