// SPDX-License-Identifier: Apache-2.0
#include "acc/script/job_script.hpp"

#include "support/catch.hpp"
#include "support/engine_environments.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace job_script_test {

using acc::Environment;
using acc::launcher::ConfigText;
using acc::launcher::LaunchInputs;
using acc::launcher::plan_script;
using acc::launcher::script_notes;
using acc::launcher::ScriptJob;
using acc::test::error_of;
using acc::test::inputs;
using Words = std::vector<std::string>;

namespace {

LaunchInputs asked_for(const std::string& kind, const Words& words, int gpus = 0) {
  Words all = {"--print-script", kind};
  all.insert(all.end(), words.begin(), words.end());
  return inputs(all, acc::launcher::Dialect::launch, gpus);
}

ScriptJob job_of(const std::string& kind, const Words& words, int gpus = 0) {
  return plan_script(asked_for(kind, words, gpus), "acc", std::nullopt);
}

std::string refusal(const std::string& kind, const Words& words) {
  return error_of([&] { job_of(kind, words); });
}

}  // namespace

TEST_CASE("job script: the command stays, but for what the engine tells acc", "[script]") {
  const ScriptJob job = job_of("slurm", {"--num_machines=2", "--nproc_per_node", "4", "--mixed_precision",
                                         "bf16", "train.py", "--nnodes", "7"});
  CHECK(job.words == Words{"acc", "launch", "--nproc_per_node", "4", "--mixed_precision", "bf16", "train.py",
                           "--nnodes", "7"});
  CHECK(job.typed == Words{"acc", "launch", "--print-script", "slurm", "--num_machines=2", "--nproc_per_node",
                           "4", "--mixed_precision", "bf16", "train.py", "--nnodes", "7"});
  CHECK(job.name == "train");
  CHECK(job.nodes == 2);
  CHECK(job.workers_per_node == 4);
  // Pods are not told how many they are.
  CHECK(job_of("k8s", {"--num_machines", "2", "train.py"}).words ==
        Words{"acc", "launch", "--nnodes", "2", "train.py"});
  CHECK(job_of("k8s", {"train.py"}).words == Words{"acc", "launch", "train.py"});
  CHECK(job_of("jobset", {"train.py"}).words == Words{"acc", "launch", "--nnodes", "1", "train.py"});
  CHECK(job_of("pbs", {"--nnodes", "3", "--", "-x"}).words == Words{"acc", "launch", "--", "-x"});
  CHECK(job_of("pbs", {"--cpu", "--", "test", "x"}).words ==
        Words{"acc", "launch", "--cpu", "--", "test", "x"});
}

TEST_CASE("job script: a number of workers over all nodes becomes one per node", "[script]") {
  const ScriptJob job = job_of("slurm", {"--nnodes", "2", "--num_processes", "8", "train.py"});
  CHECK(job.words == Words{"acc", "launch", "--nproc_per_node", "4", "train.py"});
  // A job of one process stays without ranks.
  CHECK(job_of("slurm", {"--num_processes", "1", "train.py"}).words ==
        Words{"acc", "launch", "--num_processes", "1", "train.py"});
  LaunchInputs from_file = asked_for("slurm", {"train.py"});
  from_file.file = acc::test::file({{"num_machines", 2}, {"num_processes", 4}});
  from_file.file_is_default = true;
  const ScriptJob of_file = plan_script(from_file, "acc", std::nullopt);
  CHECK(of_file.nodes == 2);
  CHECK(of_file.words == Words{"acc", "launch", "--nproc_per_node", "2", "train.py"});
}

TEST_CASE("job script: GPUs are asked for where the job uses them", "[script]") {
  const ScriptJob job = job_of("slurm", {"--nnodes", "2", "train.py"}, 8);
  CHECK(job.gpus_per_node == 8);
  CHECK(job.workers_per_node == 8);
  CHECK(job.cpus_per_node == 64);
  CHECK(job.words == Words{"acc", "launch", "train.py"});
  // A login node has none.
  CHECK(job_of("slurm", {"--multi_gpu", "--num_processes", "4", "train.py"}).gpus_per_node == 4);
  CHECK(job_of("slurm", {"--use_fsdp", "--num_processes", "4", "train.py"}).gpus_per_node == 4);
  CHECK(job_of("slurm", {"--gpu_ids", "0,1,2", "train.py"}).gpus_per_node == 3);
  CHECK(job_of("slurm", {"--gpu_ids", "GPU-aa,GPU-bb", "train.py"}).gpus_per_node == 2);
  const ScriptJob unknown = job_of("slurm", {"--nproc_per_node", "2", "train.py"});
  CHECK(unknown.gpus_per_node == 0);
  CHECK(unknown.may_use_gpus);
  CHECK(script_notes(unknown, {}).size() == 1);
  const ScriptJob cpu = job_of("slurm", {"--cpu", "--nproc_per_node", "2", "train.py"}, 8);
  CHECK(cpu.gpus_per_node == 0);
  CHECK_FALSE(cpu.may_use_gpus);
  CHECK(cpu.cpus_per_node == 8);
  CHECK(job_of("slurm", {"--nproc_per_node", "2", "--num_cpu_threads_per_process", "3", "train.py"})
            .cpus_per_node == 6);
}

TEST_CASE("job script: the grace is that of acc and a margin", "[script]") {
  CHECK(job_of("k8s", {"train.py"}).grace_seconds == 40);
  CHECK(job_of("k8s", {"--shutdown-timeout", "120", "train.py"}).grace_seconds == 135);
}

TEST_CASE("job script: variables with an effect are written, the secret is not", "[script]") {
  LaunchInputs launch_inputs = asked_for("k8s", {"--max_restarts", "1", "train.py"});
  launch_inputs.environment.overlay({{"PET_NNODES", "2"},
                                     {"PET_NPROC_PER_NODE", "3"},
                                     {"PET_MAX_RESTARTS", "5"},
                                     {"PET_LOG_DIR", "/logs"},
                                     {"ACC_JOB_SECRET", "0123456789abcdef"}});
  const ScriptJob job = plan_script(launch_inputs, "acc", std::nullopt);
  CHECK(job.nodes == 2);
  CHECK(job.environment == Environment{{"PET_NPROC_PER_NODE", "3"}, {"PET_LOG_DIR", "/logs"}});
  const auto notes = script_notes(job, launch_inputs.environment);
  REQUIRE_FALSE(notes.empty());
  CHECK(notes.back() == "ACC_JOB_SECRET is not written into the script: give it to the job yourself");
}

TEST_CASE("job script: a config file goes into the manifest, and stays where nodes see it", "[script]") {
  const ConfigText config = {.path = "/home/me/default.json", .text = "{}\n"};
  const ScriptJob job = plan_script(asked_for("k8s", {"--config_file", "x.json", "train.py"}), "acc", config);
  CHECK(job.words == Words{"acc", "launch", "--config_file", "/etc/acc/config.json", "train.py"});
  REQUIRE(job.config);
  CHECK(job.config->text == "{}\n");
  const ScriptJob seen =
      plan_script(asked_for("slurm", {"--config_file", "x.json", "train.py"}), "acc", config);
  CHECK(seen.words == Words{"acc", "launch", "--config_file", "x.json", "train.py"});
  CHECK_FALSE(seen.config);
}

TEST_CASE("job script: what does not hold on nodes that are not known yet is refused", "[script]") {
  CHECK(refusal("slurm", {"--machine_rank", "1", "train.py"}) ==
        "--machine_rank: the script asks the engine for nodes, which are not known yet: it tells acc there "
        "which they are "
        "(drop it, or --print-script)");
  CHECK(refusal("slurm", {"--main_process_ip", "node0", "train.py"})
            .starts_with("--main_process_ip: the script asks"));
  CHECK(refusal("slurm", {"--srun", "train.py"}).starts_with("--srun: the script asks"));
  CHECK(refusal("slurm", {"--engine", "none", "train.py"}) ==
        "--engine: is not slurm, which acc finds in such a job (drop it)");
  CHECK(refusal("k8s", {"--engine", "k8s", "train.py"}) == "no error");
  CHECK(refusal("k8s", {"--nnodes", "2:4", "train.py"}) ==
        "--nnodes: k8s starts a fixed number of nodes, not 2:4 (give one number)");
  CHECK(
      refusal("slurm", {"--nnodes", "2:4", "train.py"}) ==
      "--nnodes: the static rendezvous does not go on with fewer nodes (--rdzv-backend c10d, or one number)");
  const ScriptJob range = job_of("slurm", {"--nnodes", "2:4", "--rdzv-backend", "c10d", "train.py"});
  CHECK(range.nodes == 4);
  CHECK(range.words == Words{"acc", "launch", "--nnodes", "2:4", "--rdzv-backend", "c10d", "train.py"});
  CHECK(refusal("slurm", {"--nnodes", "2", "--standalone", "train.py"}) ==
        "--standalone: is a job of one machine, not of 2 (drop it)");
  CHECK(refusal("slurm", {"--nproc_per_node", "gpu", "train.py"}) ==
        "--nproc_per_node: how many workers `gpu` means on a node of the job is not known here (give their "
        "number)");
  CHECK(refusal("slurm", {"--use_deepspeed", "--nnodes", "2", "--num_processes", "4", "train.py"})
            .find("jobs of DEEPSPEED are started by another launcher") != std::string::npos);
  CHECK(refusal("slurm", {}).find("training_script") != std::string::npos);
  LaunchInputs inside = asked_for("slurm", {"train.py"});
  inside.environment.overlay(acc::test::engine_environment("slurm_srun_n2.env", 1));
  CHECK(error_of([&] { plan_script(inside, "acc", std::nullopt); }) ==
        "--print-script: acc runs in Slurm (job 2) here, which starts the command itself (print the script "
        "outside of it)");
  // As in a notebook of a cluster.
  LaunchInputs in_a_pod = asked_for("k8s", {"train.py"});
  in_a_pod.environment.set("KUBERNETES_SERVICE_HOST", "10.0.0.1");
  CHECK(error_of([&] { plan_script(in_a_pod, "acc", std::nullopt); }) == "no error");
}

TEST_CASE("job script: what would stop acc on a node stops it here", "[script]") {
  CHECK(refusal("slurm", {"--nnodes", "2", "--tee", "9", "train.py"}).find("--tee") != std::string::npos);
  CHECK(refusal("pbs", {"--nnodes", "2", "--max-restarts", "-1", "train.py"}).find("--max-restarts") !=
        std::string::npos);
  CHECK(refusal("k8s", {"--nnodes", "2", "--num_processes", "3", "train.py"})
            .find("cannot be divided evenly") != std::string::npos);
}

}  // namespace job_script_test
