// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_metrics.hpp"

#include "support/catch.hpp"

namespace trainer_metrics_test {

TEST_CASE("trainer_metrics: the speed is rounded, and left out when no time has passed", "[runtime]") {
  acc::Metrics metrics;
  acc::detail::add_speed(metrics, "eval", 0.30004, 100, 7);
  CHECK(metrics == acc::Metrics{{"eval_runtime", 0.3},
                                {"eval_samples_per_second", 333.289},
                                {"eval_steps_per_second", 23.33}});
  metrics.clear();
  acc::detail::add_speed(metrics, "train", 0, 100, 7);
  CHECK(metrics == acc::Metrics{{"train_runtime", 0}});
}

TEST_CASE("trainer_metrics: tokens per second are those of the whole training", "[runtime]") {
  acc::Metrics metrics;
  acc::detail::add_token_speed(metrics, 0.5, 100);
  CHECK(metrics == acc::Metrics{{"train_runtime", 0.5}, {"train_tokens_per_second", 200}});
}

TEST_CASE("trainer_metrics: trackers get transformers' names", "[runtime]") {
  const acc::TrackedValues values =
      acc::detail::tracked_values({{"loss", 1}, {"eval_loss", 2}, {"test_f1", 3}, {"train_runtime", 4}});
  const auto value_of = [&](const char* name) {
    return std::get<double>(std::get<acc::TrackedScalar>(values.at(name)));
  };
  CHECK(values.size() == 4);
  CHECK(value_of("train/loss") == 1);
  CHECK(value_of("eval/loss") == 2);
  CHECK(value_of("test/f1") == 3);
  CHECK(value_of("train/runtime") == 4);
}

TEST_CASE("trainer_metrics: the arguments are a tracker's configuration, without lists and what is not set",
          "[runtime]") {
  const acc::TrackedConfig config = acc::detail::tracked_config({});
  CHECK(std::get<double>(config.at("learning_rate")) == 5e-5);
  CHECK(std::get<std::int64_t>(config.at("per_device_train_batch_size")) == 8);
  CHECK_FALSE(std::get<bool>(config.at("bf16")));
  CHECK(std::get<std::string>(config.at("optim")) == "adamw_torch");
  CHECK_FALSE(config.contains("report_to"));
  CHECK_FALSE(config.contains("save_total_limit"));
}

}  // namespace trainer_metrics_test
