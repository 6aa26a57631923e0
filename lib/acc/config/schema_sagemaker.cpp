// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kSageMaker = "SageMaker";

}  // namespace

// clang-format off
std::vector<SettingSpec> sagemaker_rows() {
  return {
      {.name = "sagemaker_distributed_type", .in_sagemaker = true, .key = "distributed_type", .since = "0.2.0", .allowed = {"NO", "DATA_PARALLEL", "MODEL_PARALLEL"},
       .help = "How the training is distributed."},
      {.name = "ec2_instance_type", .in_sagemaker = true,
       .since = "0.2.0", .help = "Type of the machines."},
      {.name = "iam_role_name", .in_sagemaker = true,
       .since = "0.2.0", .help = "Role under which the job runs."},
      {.name = "image_uri", .in_sagemaker = true,
       .since = "0.11.0", .help = "Image of the container."},
      {.name = "profile", .in_sagemaker = true,
       .since = "0.2.0", .help = "AWS profile of the credentials."},
      {.name = "region", .in_sagemaker = true, .since = "0.2.0", .otherwise = "\"us-east-1\"",
       .help = "AWS region."},
      {.name = "base_job_name", .in_sagemaker = true, .since = "0.2.0", .otherwise = "\"accelerate-sagemaker-1\"",
       .help = "Beginning of the job's name."},
      {.name = "pytorch_version", .in_sagemaker = true, .since = "0.2.0", .otherwise = "\"1.10.2\"",
       .help = "Version of PyTorch in the container."},
      {.name = "transformers_version", .in_sagemaker = true, .since = "0.2.0", .otherwise = "\"4.17.0\"",
       .help = "Version of transformers in the container."},
      {.name = "py_version", .in_sagemaker = true, .since = "0.11.0", .otherwise = "\"py38\"",
       .help = "Version of Python in the container."},
      {.name = "sagemaker_inputs_file", .in_sagemaker = true,
       .since = "0.11.0", .help = "Table of the input channels."},
      {.name = "sagemaker_metrics_file", .in_sagemaker = true,
       .since = "0.11.0", .help = "Table of the metrics to watch."},
      {.name = "additional_args", .type = ValueType::section, .in_sagemaker = true, .since = "0.17.0", .otherwise = "{}",
       .help = "More arguments of the estimator."},
      {.name = "aws_access_key_id", .flags = {accelerate("--aws_access_key_id")},
       .group = kSageMaker, .help = "Access key of a SageMaker job, which acc does not start."},
      {.name = "aws_secret_access_key", .flags = {accelerate("--aws_secret_access_key")},
       .group = kSageMaker, .help = "Secret key of a SageMaker job, which acc does not start."},
  };
}
// clang-format on

}  // namespace acc::launcher
