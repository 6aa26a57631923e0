// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/job_shape.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace job_shape_test {

using acc::launcher::decide_shape;
using acc::launcher::Dialect;
using acc::launcher::DistributedType;
using acc::launcher::JobShape;
using acc::launcher::Launcher;
using acc::launcher::LaunchInputs;
using acc::launcher::Setting;
using acc::launcher::Settings;
using acc::launcher::Value;
using acc::test::error_of;
using acc::test::inputs;

namespace {

JobShape shape_of(const LaunchInputs& launch_inputs) {
  Settings settings(launch_inputs);
  return decide_shape(launch_inputs, settings);
}

JobShape shape_of(const std::vector<std::string>& words, const Value& file = Value::object(), int gpus = 0) {
  LaunchInputs launch_inputs = inputs(words, Dialect::launch, gpus);
  launch_inputs.file = acc::test::file(file);
  return shape_of(launch_inputs);
}

std::string shape_error(const std::vector<std::string>& words, const Value& file = Value::object(),
                        int gpus = 0) {
  return error_of([&] { shape_of(words, file, gpus); });
}

}  // namespace

TEST_CASE("job_shape: no processes are one under accelerate's rules, where it starts one", "[plan]") {
  const auto shape_under_it = [](const std::vector<std::string>& words, const Value& file) {
    LaunchInputs launch_inputs = inputs(words, Dialect::launch);
    launch_inputs.file = acc::test::file(file);
    launch_inputs.none_is_one = true;
    return shape_of(launch_inputs);
  };
  const Value none = {{"distributed_type", "MULTI_CPU"}, {"num_processes", 0}};
  const JobShape shape = shape_under_it({"train.py"}, none);
  CHECK(shape.nproc_per_node == 1);
  REQUIRE(shape.notes.size() == 1);
  CHECK(shape.notes[0].ends_with("num_processes 0 is one process, as under accelerate"));
  CHECK(shape_under_it({"--num_processes", "-1", "train.py"}, Value::object()).nproc_per_node == 1);
  CHECK(shape_under_it({"--num_processes", "2", "train.py"}, none).nproc_per_node == 2);
  const auto refused = [&](const std::vector<std::string>& words, const Value& file) {
    return error_of([&] { shape_under_it(words, file); }).find("must be at least 1") != std::string::npos;
  };
  CHECK(refused({"train.py"}, {{"distributed_type", "MULTI_GPU"}, {"num_processes", 0}}));
  CHECK(refused({"--num_processes", "-1", "train.py"}, none));
  CHECK(refused({"--num_processes", "0", "--num_machines", "2", "train.py"}, Value::object()));
  CHECK(shape_error({"--num_processes", "0", "train.py"}).find("must be at least 1") != std::string::npos);
}

TEST_CASE("job_shape: without GPUs: one plain process without a rank", "[plan]") {
  const JobShape shape = shape_of({"train.py"});
  CHECK(shape.launcher == Launcher::simple);
  CHECK(shape.nproc_per_node == 1);
  CHECK_FALSE(shape.sets_ranks);
}

TEST_CASE("job_shape: one worker per visible GPU without a given number", "[plan]") {
  const JobShape shape = shape_of({"train.py"}, Value::object(), 4);
  CHECK(shape.distributed_type == DistributedType::multi_gpu);
  CHECK(shape.launcher == Launcher::elastic);
  CHECK(shape.nproc_per_node == 4);
}

TEST_CASE("job_shape: a MULTI_CPU file starts the number of processes it was told", "[plan]") {
  const JobShape shape = shape_of({"train.py"}, {{"distributed_type", "MULTI_CPU"}, {"num_processes", 4}});
  CHECK(shape.nproc_per_node == 4);
  CHECK(shape.launcher == Launcher::simple);
  CHECK(shape.use_cpu);
  CHECK(shape.sets_ranks);
}

TEST_CASE("job_shape: several workers always have ranks", "[plan]") {
  const JobShape shape = shape_of({"--num_processes", "2", "train.py"});
  CHECK(shape.use_cpu);
  CHECK(shape.distributed_type == DistributedType::multi_cpu);
  CHECK(shape.notes == std::vector<std::string>{"no GPU is visible: the workers train on the CPU"});
  const JobShape refused = shape_of({"train.py"}, {{"distributed_type", "MULTI_GPU"}, {"num_processes", 2}});
  REQUIRE(refused.problems.size() == 1);
  CHECK(to_string(refused.problems[0]) ==
        "job.yaml:1: MULTI_GPU, but no GPU is visible on this machine (--cpu trains on the CPU)");
}

TEST_CASE("job_shape: an error names the flag as spelled", "[plan]") {
  const JobShape gpus = shape_of({"--multi_gpu", "--num_processes", "2", "train.py"});
  REQUIRE(gpus.problems.size() == 1);
  CHECK(to_string(gpus.problems[0]) ==
        "--multi_gpu: MULTI_GPU, but no GPU is visible on this machine (--cpu trains on the CPU)");
  const JobShape sharded =
      shape_of({"--use_fsdp", "--num_processes", "2", "train.py"}, {{"distributed_type", "NO"}});
  REQUIRE(sharded.problems.size() == 1);
  CHECK(to_string(sharded.problems[0]).starts_with("--use_fsdp: FSDP, but no GPU is visible"));
}

TEST_CASE("job_shape: both dialects count alike, and a contradiction names both flags", "[plan]") {
  CHECK(shape_of({"--nproc-per-node", "3", "train.py"}).nproc_per_node == 3);
  CHECK(shape_of({"--nproc-per-node", "2", "--num_processes", "2", "train.py"}).nproc_per_node == 2);
  CHECK(shape_error({"--nproc-per-node", "2", "--num_processes", "3", "train.py"}) ==
        "--nproc-per-node (nproc_per_node = 2) and --num_processes (num_processes = 3) contradict each other "
        "(give one of "
        "them)");
  CHECK(shape_error({"--num_machines", "2", "--nnodes", "3", "train.py"})
            .starts_with("--nnodes (nnodes = 3) and --num_machines"));
}

TEST_CASE("job_shape: the GPUs that gpu_ids offer are counted as CUDA counts them", "[plan]") {
  const Value three = {{"distributed_type", "MULTI_GPU"}, {"num_processes", 3}};
  CHECK(shape_of({"--gpu_ids", "0,1", "train.py"}, three, 4).notes ==
        std::vector<std::string>{"3 workers share 2 GPUs"});
  CHECK(shape_of({"--gpu_ids", "ALL", "train.py"}, three, 4).notes.empty());
  CHECK(shape_error({"--gpu_ids", "0,,1", "train.py"}, three, 4)
            .starts_with("--gpu_ids: '' in '0,,1' does not"));
  CHECK(shape_error({"--gpu_ids", "2,2,1", "train.py"}, three, 4)
            .starts_with("--gpu_ids: gpu_ids names GPU 2 twice"));
}

TEST_CASE("job_shape: flags override the file's number and type", "[plan]") {
  const Value four = {{"distributed_type", "MULTI_GPU"}, {"num_processes", 4}};
  CHECK(shape_of({"--cpu", "train.py"}, four).distributed_type == DistributedType::multi_cpu);
  CHECK(shape_of({"--nproc-per-node", "2", "train.py"}, four, 4).nproc_per_node == 2);
  CHECK(shape_of({"--num_processes", "2", "train.py"}, {{"distributed_type", "NO"}, {"num_processes", 1}})
            .nproc_per_node == 2);
}

TEST_CASE("job_shape: invalid numbers are errors with their origin", "[plan]") {
  CHECK(shape_error({"--num_processes", "0", "train.py"}) ==
        "--num_processes: num_processes must be at least 1, not 0");
  CHECK(shape_error({"train.py"}, {{"distributed_type", "NO"}, {"num_machines", 2}, {"num_processes", 4}})
            .starts_with("job.yaml:1 (distributed_type = NO) and job.yaml:2 (num_machines = 2)"));
  CHECK(shape_error({"--num_machines", "2", "--num_processes", "7", "train.py"})
            .starts_with("7 processes (--num_processes) cannot be divided evenly among 2 machines"));
  CHECK(shape_error({"--machine_rank", "1", "train.py"}) ==
        "--machine_rank: machine rank 1 is not below the number of machines, 1");
  CHECK(shape_error({"--cpu", "--multi_gpu", "train.py"})
            .starts_with("--cpu and --multi_gpu exclude each other"));
  CHECK(shape_error({"--nproc-per-node", "many", "train.py"})
            .starts_with("--nproc-per-node: 'many' is not a number of workers"));
  CHECK(shape_error({"--nnodes", "3:1", "train.py"})
            .starts_with("--nnodes: '3:1' is not a number of machines"));
}

TEST_CASE("job_shape: torchrun's rules: one worker, or what nproc-per-node says", "[plan]") {
  const auto nproc = [](const std::string& text, int gpus) {
    return shape_of(inputs({"--nproc-per-node", text, "train.py"}, Dialect::torchrun, gpus)).nproc_per_node;
  };
  CHECK(shape_of(inputs({"train.py"}, Dialect::torchrun, 4)).nproc_per_node == 1);
  CHECK(nproc(" 2 ", 0) == 2);
  CHECK(nproc("auto", 4) == 4);
  CHECK(nproc("auto", 0) == 32);
  CHECK(nproc("gpu", 2) == 2);
  CHECK(nproc("cpu", 2) == 32);
  LaunchInputs bound = inputs({"--nproc-per-node", "cpu", "train.py"}, Dialect::torchrun);
  bound.machine.allowed_cpus = 3;  // as by taskset, or a cpuset
  CHECK(shape_of(bound).nproc_per_node == 3);
  CHECK(error_of([&] { nproc("gpu", 0); }).starts_with("--nproc-per-node: no GPU is visible"));
  CHECK(error_of([&] { nproc("0", 0); }) ==
        "--nproc-per-node: the number of workers must be at least 1, not 0");
}

TEST_CASE("job_shape: a flag chooses the way to train over the file, and two exclude each other", "[plan]") {
  const auto type = [](const std::string& flag) {
    return shape_of({flag, "--num_processes", "2", "train.py"},
                    {{"distributed_type", "MULTI_GPU"}, {"mpirun_hostfile", "/h"}})
        .distributed_type;
  };
  CHECK(type("--use_fsdp") == DistributedType::fsdp);
  CHECK(type("--use_deepspeed") == DistributedType::deepspeed);
  CHECK(type("--use_megatron_lm") == DistributedType::megatron_lm);
  CHECK(type("--tpu") == DistributedType::xla);
  CHECK(shape_error({"--use_fsdp", "--use_deepspeed", "--num_processes", "2", "train.py"}) ==
        "--use_deepspeed and --use_fsdp exclude each other (give one of them)");
  CHECK(shape_error({"--use_parallelism_config", "--num_processes", "2", "train.py"}) ==
        "--use_parallelism_config: works with FSDP only (add --use_fsdp)");
}

TEST_CASE("job_shape: jobs of other launchers are handed to them", "[plan]") {
  const auto launcher = [](const Value& file, const std::string& flag = "--debug") {
    const JobShape shape = shape_of({flag, "--num_processes", "4", "train.py"}, file);
    return shape.delegated && !shape.sets_ranks ? word_of(shape.launcher) : "own";
  };
  CHECK(launcher({{"distributed_type", "XLA"}}) == "tpu");
  CHECK(launcher({{"distributed_type", "XLA"}, {"tpu_use_cluster", true}}) == "tpu-pod");
  CHECK(launcher({{"distributed_type", "XLA"}, {"tpu_use_cluster", true}}, "--tpu") == "tpu");
  CHECK(launcher({{"distributed_type", "DEEPSPEED"}, {"num_machines", 2}}) == "deepspeed");
  CHECK(launcher({{"distributed_type", "DEEPSPEED"}}) == "own");
  CHECK(launcher({{"distributed_type", "MULTI_CPU"}, {"mpirun_hostfile", "/h"}}) == "simple");
  CHECK(launcher({{"distributed_type", "MULTI_CPU"}}) == "own");
}

TEST_CASE("job_shape: unsupported jobs are refused", "[plan]") {
  for (const auto* type : {"DEEPSPEED", "FSDP", "MEGATRON_LM"}) {
    CHECK_FALSE(shape_of({"train.py"}, {{"distributed_type", type}, {"num_processes", 2}}).problems.empty());
  }
  CHECK(shape_error({"train.py"}, {{"compute_environment", "AMAZON_SAGEMAKER"}})
            .starts_with("job.yaml:1: SageMaker jobs are not started by acc"));
}

TEST_CASE("job_shape: a range of machines counts its maximum, and keeps its minimum", "[plan]") {
  const JobShape shape = shape_of({"--nnodes", "2:4", "--node-rank", "3", "train.py"});
  CHECK(shape.num_machines == 4);
  CHECK(shape.min_machines == 2);
  CHECK(shape.machine_rank == 3);
  CHECK(shape_of({"--num_machines", "3", "train.py"}).min_machines == 3);
  CHECK(shape_of({"--nnodes", "2", "train.py"}).problems.empty());
}

TEST_CASE("job_shape: a rank beyond the machines matters to the static rendezvous alone", "[plan]") {
  CHECK(
      shape_of({"--nnodes", "1:2", "--node-rank", "7", "--rdzv-backend", "c10d", "train.py"}).machine_rank ==
      0);
  CHECK(shape_error({"--nnodes", "2", "--node-rank", "-1", "train.py"}) ==
        "--node-rank: machine rank -1 is not below the number of machines, 2");
}

TEST_CASE("job_shape: a file of type NO starts one process, whatever number it says, with a note", "[plan]") {
  const Value file = {{"distributed_type", "NO"}, {"num_processes", 8}};
  for (const int gpus : {0, 8}) {
    const JobShape shape = shape_of({"train.py"}, file, gpus);
    CHECK(shape.nproc_per_node == 1);
    CHECK(shape.distributed_type == DistributedType::no);
    CHECK_FALSE(shape.sets_ranks);
    CHECK(shape.notes == std::vector<std::string>{
                             "job.yaml:1: distributed_type NO starts one process, not the 8 of job.yaml:2"});
  }
  CHECK(shape_of({"--num_processes", "4", "train.py"}, file).nproc_per_node == 4);
}

TEST_CASE("job_shape: num_processes of a file may be a word, on one machine", "[plan]") {
  const auto workers = [](const std::string& word, int gpus) {
    return shape_of({"train.py"}, {{"distributed_type", "MULTI_GPU"}, {"num_processes", word}}, gpus);
  };
  CHECK(workers("gpu", 3).nproc_per_node == 3);
  CHECK(workers("auto", 3).nproc_per_node == 3);
  CHECK(workers("cpu", 3).nproc_per_node == 32);
  CHECK(shape_error({"train.py"}, {{"distributed_type", "MULTI_GPU"}, {"num_processes", "gpu"}}) ==
        "job.yaml:2: no GPU is visible on this machine (`cpu` starts a worker per CPU)");
  CHECK(
      shape_error({"train.py"},
                  {{"distributed_type", "MULTI_CPU"}, {"num_machines", 2}, {"num_processes", "cpu"}}) ==
      "job.yaml:3: num_processes cpu counts on one machine, and these are 2 (job.yaml:2) (give the number of "
      "processes on all machines)");
}

TEST_CASE("job_shape: one process of any type runs without a GPU, as under accelerate", "[plan]") {
  for (const std::string type : {"MULTI_GPU", "FSDP", "MEGATRON_LM"}) {
    const JobShape one = shape_of({"train.py"}, {{"distributed_type", type}, {"num_processes", 1}});
    CAPTURE(type);
    CHECK(one.problems.empty());
    CHECK(one.launcher == Launcher::elastic);
    CHECK(one.sets_ranks);
    CHECK(one.notes == std::vector<std::string>{"no GPU is visible: the one process of this " + type +
                                                " job trains on the CPU"});
    CHECK(shape_of({"train.py"}, {{"distributed_type", type}, {"num_processes", 2}}).problems.size() == 1);
  }
}

TEST_CASE("job_shape: more ranks than a number of 32 bits counts are refused", "[plan]") {
  const std::vector<std::string> words = {"--nnodes", "70000", "--nproc-per-node", "100000", "train.py"};
  const std::string error = "70000 machines with 100000 workers each are more than 2147483647 ranks";
  CHECK(shape_error(words) == error);
  CHECK(error_of([&] { shape_of(inputs(words, Dialect::torchrun)); }) == error);
}

TEST_CASE("job_shape: a SageMaker file is refused for what it is, whatever its distributed_type", "[plan]") {
  const auto refusal = [](const std::string& type) {
    LaunchInputs launch_inputs = inputs({"train.py"});
    launch_inputs.file = acc::launcher::file_settings(acc::launcher::parse_config(
        "compute_environment: AMAZON_SAGEMAKER\nnum_machines: 2\nec2_instance_type: x\niam_role_name: y\n"
        "distributed_type: " +
            type + "\n",
        "job.yaml"));
    return error_of([&] { shape_of(launch_inputs); });
  };
  CHECK(refusal("DATA_PARALLEL").starts_with("job.yaml:1: SageMaker jobs are not started by acc"));
  CHECK(refusal("NO") == refusal("DATA_PARALLEL"));
}

}  // namespace job_shape_test
