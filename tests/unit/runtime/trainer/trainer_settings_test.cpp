// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_settings.hpp"

#include <chrono>
#include <map>
#include <string>

#include "support/catch.hpp"

namespace trainer_settings_test {

using acc::TrainingArguments;

TEST_CASE("trainer settings: the Accelerator computes as the arguments say", "[runtime]") {
  TrainingArguments arguments;
  arguments.bf16 = true;
  arguments.output_dir = "run";
  arguments.ddp_timeout = 60;
  arguments.ddp_bucket_cap_mb = 3;
  arguments.ddp_static_graph = true;
  arguments.accelerator_config.even_batches = false;
  acc::AcceleratorOptions options = acc::detail::accelerator_options(arguments);
  CHECK(options.mixed_precision == acc::MixedPrecision::bf16);
  CHECK(options.project_dir == "run");
  CHECK(options.process_group.timeout == std::chrono::minutes(1));
  CHECK(options.ddp.bucket_cap_mb == 3);
  CHECK(options.ddp.static_graph);
  CHECK_FALSE(options.even_batches);
  CHECK_FALSE(options.fsdp);
  // A Trainer itself counts the steps of its schedule.
  CHECK_FALSE(options.step_scheduler_with_optimizer);

  arguments.bf16 = false;
  arguments.fp16 = true;
  arguments.fsdp = true;
  arguments.fsdp_config.auto_wrap_policy = acc::WrapPolicy::size_based;
  arguments.fsdp_config.min_num_params = 1000;
  options = acc::detail::accelerator_options(arguments);
  CHECK(options.mixed_precision == acc::MixedPrecision::fp16);
  CHECK(options.fsdp.value().min_num_params == 1000);
}

TEST_CASE("trainer settings: processes share what decides the weights, not what a machine has of its own",
          "[runtime]") {
  const auto shared = [](const TrainingArguments& arguments, const std::string& choice) {
    const acc::detail::SharedSettings settings = acc::detail::shared_settings(arguments, choice);
    return std::map<std::string, std::string>(settings.begin(), settings.end());
  };
  TrainingArguments arguments;
  const auto first = shared(arguments, "");
  CHECK(first.contains("learning_rate"));
  arguments.output_dir = "elsewhere";
  arguments.dataloader_num_workers = 2;
  arguments.seed = 7;
  CHECK(shared(arguments, "last") == first);
  arguments.learning_rate = 1;
  CHECK(shared(arguments, "last") != first);
  // Which folder it is depends on the machine; what it holds is compared when it is found.
  CHECK(shared(arguments, "/here") == shared(arguments, "/there"));
  CHECK(shared(arguments, "/here") != shared(arguments, "false"));
}

}  // namespace trainer_settings_test
