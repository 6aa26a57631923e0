// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kMpi = "MPI";
constexpr std::string_view kTpu = "TPU";
constexpr std::string_view kSageMaker = "SageMaker";

}  // namespace

// clang-format off
std::span<const SettingSpec> mpi_rows() {
  static SettingSpec rows[] = {
      {.name = "mpirun_config", .since = "0.28.0", .help = "Start through mpirun."},
      {.name = "mpirun_hostfile", .since = "0.28.0",
       .flags = {accelerate("--mpirun_hostfile")},
       .help = "Start CPU workers through mpirun on the hosts of this file."},
  };
  return section_rows(kMpi, rows);
}

std::span<const SettingSpec> tpu_rows() {
  static SettingSpec rows[] = {
      {.name = "main_training_function", .in_file = true, .since = "0.1.0", .default_value = "\"main\"",
       .flags = {accelerate("--main_training_function")}, .group = kTpu,
       .help = "Function of the script that each TPU process calls."},
      {.name = "downcast_bf16", .type = ValueType::boolean, .in_file = true, .since = "0.12.0",
       .default_value = "false",
       .flags = {accelerate_switch("--downcast_bf16")}, .group = kTpu,
       .help = "With bf16, float and double both become bfloat16."},
      {.name = "tpu_use_cluster", .type = ValueType::boolean, .in_file = true, .since = "0.17.0",
       .default_value = "false",
       .flags = {accelerate_switch("--tpu_cluster"), {.spelling = "--no_tpu_cluster", .implicit_value = "false"}},
       .group = kTpu,
       .help = "The TPU is a pod of several machines."},
      {.name = "tpu_use_sudo", .type = ValueType::boolean, .in_file = true, .since = "0.17.0",
       .default_value = "false",
       .flags = {accelerate_switch("--tpu_use_sudo")}, .group = kTpu,
       .help = "Run commands on the pod with sudo."},
      {.name = "tpu_vm", .type = ValueType::list, .in_file = true, .since = "0.17.0",
       .flags = {accelerate("--vm")}, .group = kTpu,
       .help = "Name of one of the pod's machines; may be given several times."},
      {.name = "tpu_env", .type = ValueType::list, .in_file = true, .since = "0.17.0",
       .flags = {accelerate("--env")}, .group = kTpu,
       .help = "Variable NAME=VALUE for the pod's machines; may be given several times."},
      {.name = "tpu_name", .in_file = true, .since = "0.14.0",
       .help = "Name of the TPU."},
      {.name = "tpu_zone", .in_file = true, .since = "0.14.0",
       .help = "Zone of the TPU."},
      {.name = "command_file", .in_file = true, .since = "0.14.0",
       .help = "File with commands to run when the pod starts."},
      {.name = "commands", .type = ValueType::list, .in_file = true, .since = "0.14.0",
       .help = "Commands to run when the pod starts."},
  };
  return rows;
}

std::span<const SettingSpec> sagemaker_rows() {
  static SettingSpec rows[] = {
      {.name = "sagemaker_distributed_type", .in_sagemaker = true, .key = "distributed_type",
       .since = "0.2.0", .allowed = {"NO", "DATA_PARALLEL", "MODEL_PARALLEL"},
       .help = "How the training is distributed."},
      {.name = "ec2_instance_type", .in_sagemaker = true, .since = "0.2.0",
       .help = "Type of the machines."},
      {.name = "iam_role_name", .in_sagemaker = true, .since = "0.2.0",
       .help = "Role under which the job runs."},
      {.name = "image_uri", .in_sagemaker = true, .since = "0.11.0",
       .help = "Image of the container."},
      {.name = "profile", .in_sagemaker = true, .since = "0.2.0",
       .help = "AWS profile of the credentials."},
      {.name = "region", .in_sagemaker = true, .since = "0.2.0", .default_value = "\"us-east-1\"",
       .help = "AWS region."},
      {.name = "base_job_name", .in_sagemaker = true, .since = "0.2.0",
       .default_value = "\"accelerate-sagemaker-1\"",
       .help = "Beginning of the job's name."},
      {.name = "pytorch_version", .in_sagemaker = true, .since = "0.2.0", .default_value = "\"1.10.2\"",
       .help = "Version of PyTorch in the container."},
      {.name = "transformers_version", .in_sagemaker = true, .since = "0.2.0", .default_value = "\"4.17.0\"",
       .help = "Version of transformers in the container."},
      {.name = "py_version", .in_sagemaker = true, .since = "0.11.0", .default_value = "\"py38\"",
       .help = "Version of Python in the container."},
      {.name = "sagemaker_inputs_file", .in_sagemaker = true, .since = "0.11.0",
       .help = "Table of the input channels."},
      {.name = "sagemaker_metrics_file", .in_sagemaker = true, .since = "0.11.0",
       .help = "Table of the metrics to watch."},
      {.name = "additional_args", .type = ValueType::section, .in_sagemaker = true, .since = "0.17.0",
       .default_value = "{}",
       .help = "More arguments of the estimator."},
      {.name = "aws_access_key_id",
       .flags = {accelerate("--aws_access_key_id")}, .group = kSageMaker,
       .help = "Access key of a SageMaker job, which acc does not start."},
      {.name = "aws_secret_access_key",
       .flags = {accelerate("--aws_secret_access_key")}, .group = kSageMaker,
       .help = "Secret key of a SageMaker job, which acc does not start."},
  };
  return rows;
}
// clang-format on

}  // namespace acc::launcher
