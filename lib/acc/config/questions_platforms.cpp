// SPDX-License-Identifier: Apache-2.0
#include "acc/config/questions.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kNewRole = "accelerate_sagemaker_execution_role";

bool by_keys(const Answers& answers) {
  return answers.is("aws_authorization", "keys");
}
bool several(const Answers& answers) {
  return !answers.is("sagemaker_distributed_type", "NO");
}

}  // namespace

std::vector<Question> sagemaker_questions() {
  using enum QuestionKind;
  std::vector<Question> all = {
      {.name = "aws_authorization",
       .prompt = "How does AWS know you?",
       .kind = menu,
       .default_answer = "AWS profile",
       .help = "Jobs of SageMaker run under your AWS account.",
       .choices = {{"AWS profile", "profile", {}}, {"Access keys, given again at each launch", "keys", {}}}},
      {.name = "profile",
       .prompt = "Name of the AWS profile?",
       .kind = text,
       .default_answer = "default",
       .key = "profile",
       .condition = [](const Answers& a) { return a.is("aws_authorization", "profile"); }},
      // accelerate uses the keys to create a role and does not store them either.
      {.name = "aws_access_key_id",
       .prompt = "AWS access key ID (kept nowhere, may be left out)?",
       .kind = secret,
       .optional = true,
       .help = "Keys are written to no file.",
       .condition = by_keys},
      {.name = "aws_secret_access_key",
       .prompt = "AWS secret access key (kept nowhere, may be left out)?",
       .kind = secret,
       .optional = true,
       .help = "Keys are written to no file.",
       .condition = by_keys},
      {.name = "region",
       .prompt = "AWS region?",
       .kind = text,
       .default_answer = "us-east-1",
       .key = "region"},
      {.name = "iam_role",
       .prompt = "Which IAM role do the jobs run under?",
       .kind = menu,
       .default_answer = "One that exists",
       .help = "The role decides what a job may read and write in your AWS account.",
       .choices = {{"One that exists", "existing", {}},
                   {"A new one, to be made with `aws iam create-role`",
                    "new",
                    {{"iam_role_name", kNewRole}}}}},
      {.name = "iam_role_name",
       .prompt = "Name of the IAM role?",
       .kind = text,
       .example = "my-training-role",
       .key = "iam_role_name",
       .condition = [](const Answers& a) { return a.is("iam_role", "existing"); }},
      {.name = "image",
       .prompt = "Use a container image of your own?",
       .default_answer = "no",
       .help = "Without one, the job runs in the image for its versions of PyTorch and transformers."},
      {.name = "image_uri",
       .prompt = "Which image?",
       .kind = text,
       .example = "1234567890.dkr.ecr.us-east-1.amazonaws.com/train:latest",
       .key = "image_uri",
       .condition = [](const Answers& a) { return a.yes("image"); }},
      {.name = "sagemaker_inputs",
       .prompt = "Does the job read input channels?",
       .default_answer = "no",
       .help = "Data that SageMaker copies into the job's container."},
      {.name = "sagemaker_inputs_file",
       .prompt = "Path of the table of channels (TSV: channel_name, data_location)?",
       .kind = text,
       .example = "inputs.tsv",
       .key = "sagemaker_inputs_file",
       .condition = [](const Answers& a) { return a.yes("sagemaker_inputs"); }},
      {.name = "sagemaker_metrics",
       .prompt = "Watch metrics of the job?",
       .default_answer = "no",
       .help = "Numbers that SageMaker finds in what the job prints."},
      {.name = "sagemaker_metrics_file",
       .prompt = "Path of the table of metrics (TSV: metric_name, metric_regex)?",
       .kind = text,
       .example = "metrics.tsv",
       .key = "sagemaker_metrics_file",
       .condition = [](const Answers& a) { return a.yes("sagemaker_metrics"); }},
      {.name = "sagemaker_distributed_type",
       .prompt = "Which kind of training?",
       .kind = menu,
       .default_answer = "No distributed training",
       .key = "distributed_type",
       .choices = {{"No distributed training", "NO", {}}, {"Data parallelism", "DATA_PARALLEL", {}}}},
  };
  for (Question& question : all) question.file_kind = ConfigKind::sagemaker;
  return all;
}

std::vector<Question> sagemaker_machine_questions() {
  using enum QuestionKind;
  std::vector<Question> all = {
      // The instance types that SageMaker's data parallelism supports.
      {.name = "parallel_instance_type",
       .prompt = "Which type of EC2 instance?",
       .kind = menu,
       .default_answer = "ml.p3.16xlarge",
       .key = "ec2_instance_type",
       .choices = words({"ml.p3.16xlarge", "ml.p3dn.24xlarge", "ml.p4dn.24xlarge"}),
       .condition = several},
      {.name = "ec2_instance_type",
       .prompt = "Which type of EC2 instance?",
       .kind = text,
       .default_answer = "ml.p3.2xlarge",
       .key = "ec2_instance_type",
       .condition = [](const Answers& a) { return !several(a); }},
      {.name = "sagemaker_debug",
       .prompt = "Check distributed operations while training (slower, for debugging)?",
       .default_answer = "no",
       .key = "debug",
       .condition = several},
      {.name = "sagemaker_num_machines",
       .prompt = "How many machines?",
       .kind = integer,
       .default_answer = "1",
       .key = "num_machines",
       .condition = several},
  };
  for (Question& question : all) question.file_kind = ConfigKind::sagemaker;
  return all;
}

namespace {

bool uses_tpu(const Answers& answers) {
  return answers.type() == DistributedType::xla;
}
bool pod(const Answers& answers) {
  return answers.yes("tpu_use_cluster");
}
bool commands(const Answers& answers) {
  return answers.is("tpu_script", false);
}

}  // namespace

std::vector<Question> tpu_questions() {
  using enum QuestionKind;
  return {
      {.name = "main_training_function",
       .prompt = "Name of the function in the script that trains?",
       .kind = text,
       .default_answer = "main",
       .key = "main_training_function",
       .condition = uses_tpu},
      {.name = "tpu_use_cluster",
       .prompt = "Is it a TPU pod?",
       .default_answer = "no",
       .key = "tpu_use_cluster",
       .condition = uses_tpu},
      {.name = "tpu_name",
       .prompt = "Name of the pod?",
       .kind = text,
       .example = "my-pod",
       .key = "tpu_name",
       .condition = pod},
      {.name = "tpu_zone",
       .prompt = "Zone of the pod?",
       .kind = text,
       .example = "us-central1-a",
       .key = "tpu_zone",
       .condition = pod},
      {.name = "tpu_use_sudo",
       .prompt = "Run commands on the pod with sudo?",
       .default_answer = "no",
       .key = "tpu_use_sudo",
       .condition = pod},
      {.name = "tpu_startup",
       .prompt = "Run commands on each machine of the pod at the start?",
       .default_answer = "no",
       .help = "They run when the pod is set up by `acc tpu-config`.",
       .condition = pod},
      {.name = "tpu_script",
       .prompt = "Are they in a file?",
       .default_answer = "no",
       .help = "The lines of a file, or commands that you enter here.",
       .condition = [](const Answers& a) { return a.yes("tpu_startup"); }},
      {.name = "command_file",
       .prompt = "Path of the file?",
       .kind = path,
       .example = "setup.sh",
       .key = "command_file",
       .condition = [](const Answers& a) { return a.yes("tpu_script"); }},
      {.name = "commands",
       .prompt = "Which command?",
       .kind = text,
       .example = "pip install -r requirements.txt",
       .key = "commands",
       .appends = true,
       .condition = commands},
      {.name = "another_command",
       .prompt = "Another command?",
       .default_answer = "no",
       .help = "Commands run in the order in which you enter them.",
       .condition = commands,
       .back_to = "commands"},
      {.name = "tpu_vm",
       .prompt = "Names of the pod's machines, separated by commas (none: all)?",
       .kind = list,
       .key = "tpu_vm",
       .condition = pod},
      {.name = "tpu_env",
       .prompt = "Variables for the pod's machines, NAME=VALUE separated by commas?",
       .kind = list,
       .key = "tpu_env",
       .condition = pod},
  };
}

}  // namespace acc::launcher
