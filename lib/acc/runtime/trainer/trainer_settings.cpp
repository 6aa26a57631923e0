// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_settings.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

#include "acc/runtime/trainer/trainer_checkpoints.hpp"

namespace acc::detail {
namespace {

FsdpOptions fsdp_options(const FsdpConfig& config) {
  FsdpOptions options;
  options.reshard_after_forward = config.reshard_after_forward;
  options.state_dict_type = config.state_dict_type;
  if (config.auto_wrap_policy == WrapPolicy::transformer_based)
    options.transformer_cls_to_wrap = config.transformer_layer_cls_to_wrap;
  if (config.auto_wrap_policy == WrapPolicy::size_based) options.min_num_params = config.min_num_params;
  return options;
}

void apply(const AcceleratorConfig& config, AcceleratorOptions& options) {
  options.split_batches = config.split_batches;
  options.dispatch_batches = config.dispatch_batches;
  options.even_batches = config.even_batches;
  options.gradient_accumulation.sync_each_batch = config.gradient_accumulation_kwargs.sync_each_batch;
}

}  // namespace

AcceleratorOptions accelerator_options(const TrainingArguments& arguments) {
  AcceleratorOptions options;
  if (arguments.bf16) options.mixed_precision = MixedPrecision::bf16;
  if (arguments.fp16) options.mixed_precision = MixedPrecision::fp16;
  options.cpu = arguments.use_cpu;
  if (arguments.activation_checkpointing) options.activation_checkpointing = true;
  options.step_scheduler_with_optimizer = false;
  options.project_dir = arguments.output_dir;
  options.project.logging_dir = arguments.logging_dir;
  options.project.save_on_each_node = arguments.save_on_each_node;
  for (const std::string& tracker : arguments.report_to) options.log_with.emplace_back(tracker);
  apply(arguments.accelerator_config, options);
  if (arguments.fsdp == true) options.fsdp = fsdp_options(arguments.fsdp_config);
  if (arguments.ddp_backend) options.process_group.cuda_backend = *arguments.ddp_backend;
  options.process_group.timeout = std::chrono::seconds(arguments.ddp_timeout);
  if (arguments.ddp_find_unused_parameters)
    options.ddp.find_unused_parameters = *arguments.ddp_find_unused_parameters;
  if (arguments.ddp_bucket_cap_mb) options.ddp.bucket_cap_mb = *arguments.ddp_bucket_cap_mb;
  if (arguments.ddp_broadcast_buffers) options.ddp.broadcast_buffers = *arguments.ddp_broadcast_buffers;
  if (arguments.ddp_static_graph) options.ddp.static_graph = *arguments.ddp_static_graph;
  return options;
}

SharedSettings shared_settings(const TrainingArguments& arguments,
                               const std::string& resume_from_checkpoint) {
  nlohmann::json shared = nlohmann::json::parse(to_json(arguments));
  for (const char* own :
       {"output_dir", "logging_dir", "run_name", "report_to", "disable_tqdm", "skip_memory_metrics",
        "do_train", "do_eval", "do_predict", "remove_unused_columns", "dataloader_num_workers",
        "dataloader_pin_memory", "dataloader_prefetch_factor", "torch_empty_cache_steps",
        "activation_checkpointing", "gradient_checkpointing", "ddp_timeout", "save_on_each_node",
        // All have the order of samples of the first process.
        "seed", "data_seed"})
    shared.erase(own);
  // What the folders hold is compared, too.
  const std::string& choice = resume_from_checkpoint;
  shared["resume_from_checkpoint"] = is_newest(choice) ? "last" : choice == "false" ? choice : "a folder";
  SharedSettings settings;
  for (const auto& [name, value] : shared.items())
    settings.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  return settings;
}

}  // namespace acc::detail
