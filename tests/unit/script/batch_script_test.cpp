// SPDX-License-Identifier: Apache-2.0
#include "acc/script/batch_script.hpp"

#include "support/catch.hpp"

namespace batch_script_test {

using acc::launcher::pbs_script;
using acc::launcher::ScriptJob;
using acc::launcher::slurm_script;

namespace {

ScriptJob two_nodes() {
  return {.name = "train",
          .typed = {"acc", "launch", "my train.py"},
          .words = {"acc", "launch", "my train.py", "two\nlines"},
          .environment = {{"PET_LOG_DIR", "/my logs"}},
          .nodes = 2,
          .min_nodes = 2,
          .workers_per_node = 8,
          .gpus_per_node = 8,
          .cpus_per_node = 64,
          .grace_seconds = 45};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("batch script: Slurm's has the nodes, the devices, and acc once per node", "[script]") {
  const std::string text = slurm_script(two_nodes());
  CHECK(text.starts_with("#!/bin/bash\n"));
  CHECK(has(text, "\n#   acc launch 'my train.py'\n"));
  CHECK(has(text, "\n#SBATCH --job-name=train\n#SBATCH --nodes=2\n"));
  CHECK(has(text, "\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=8\n"));
  CHECK(has(text, "\n#SBATCH --cpus-per-task=64\n"));
  CHECK(has(text, "\nexport PET_LOG_DIR='/my logs'\n"));
  CHECK(has(text,
            "\nsrun --cpus-per-task=\"$SLURM_CPUS_PER_TASK\" --kill-on-bad-exit=0 \\\n"
            "  acc launch 'my train.py' $'two\\012lines'\n"));
  CHECK(has(text, "scontrol requeue"));
  CHECK_FALSE(has(text, "no-kill"));
}

TEST_CASE("batch script: a job that is queued again after a notice gets one", "[script]") {
  ScriptJob job = two_nodes();
  CHECK(has(slurm_script(job), "\n##SBATCH --signal=USR1@300\n"));
  job.requeues_on_preemption = true;
  CHECK(has(slurm_script(job), "\n#SBATCH --signal=USR1@300\n"));
}

TEST_CASE("batch script: a range of nodes goes on with fewer", "[script]") {
  ScriptJob job = two_nodes();
  job.nodes = 4;
  const std::string text = slurm_script(job);
  CHECK(has(text, "\n#SBATCH --nodes=4\n"));
  CHECK(has(text, "\n#SBATCH --no-kill\n"));
  CHECK(has(text, "--kill-on-bad-exit=0 --no-kill \\\n"));
}

TEST_CASE("batch script: without known GPUs they are a suggestion", "[script]") {
  ScriptJob job = two_nodes();
  job.gpus_per_node = 0;
  job.may_use_gpus = true;
  CHECK(has(slurm_script(job), "\n##SBATCH --gpus-per-node=8\n"));
  CHECK(has(pbs_script(job), "\n#PBS -l select=2:ncpus=64:mpiprocs=1\n"));
  CHECK(has(pbs_script(job), ":ngpus=8"));
  job.may_use_gpus = false;
  CHECK_FALSE(has(slurm_script(job), "gpus"));
  CHECK_FALSE(has(pbs_script(job), "gpus"));
}

TEST_CASE("batch script: PBS's starts acc by mpirun on several nodes alone", "[script]") {
  const std::string text = pbs_script(two_nodes());
  CHECK(has(text, "\n#PBS -l select=2:ncpus=64:mpiprocs=1:ngpus=8\n#PBS -l place=scatter\n"));
  CHECK(has(text, "export OMPI_MCA_odls_base_sigkill_timeout=45 "));
  CHECK(has(text,
            "\nmpirun --hostfile \"$PBS_NODEFILE\" -np 2 --map-by ppr:1:node --bind-to none \\\n"
            "  acc launch 'my train.py' $'two\\012lines'\n"));
  ScriptJob one = two_nodes();
  one.nodes = one.min_nodes = 1;
  CHECK_FALSE(has(pbs_script(one), "mpirun"));
  CHECK(has(pbs_script(one), "\nacc launch 'my train.py' $'two\\012lines'\ncode=$?\n"));
}

}  // namespace batch_script_test
