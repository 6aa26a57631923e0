// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_progress.hpp"

#include "acc/runtime/trainer/training_plan.hpp"
#include "support/catch.hpp"
#include "support/comma_locale.hpp"
#include "support/printed.hpp"
#include "support/skip.hpp"

namespace trainer_progress_test {

TEST_CASE("trainer_progress: numbers and times are formatted for reading", "[runtime]") {
  using acc::detail::clock_time;
  using acc::detail::with_thousands;
  CHECK(with_thousands(999) == "999");
  CHECK(with_thousands(1000) == "1,000");
  CHECK(with_thousands(1234567) == "1,234,567");
  CHECK(with_thousands(-1234) == "-1,234");
  CHECK(clock_time(59.9) == "00:59");
  CHECK(clock_time(3723) == "1:02:03");
  CHECK(clock_time(-1) == "00:00");
  CHECK(clock_time(1e300) == clock_time(1e15));
}

TEST_CASE("trainer_progress: before a training transformers' lines tell its size", "[runtime]") {
  const acc::detail::TrainingPlan plan{.num_examples = 60'000,
                                       .num_train_epochs = 3,
                                       .num_update_steps_per_epoch = 1'875,
                                       .max_steps = 5'625,
                                       .total_train_batch_size = 32};
  acc::TrainingArguments arguments;
  arguments.gradient_accumulation_steps = 2;
  CHECK(acc::detail::banner_of(plan, arguments, 1'199'882) ==
        "***** Running training *****\n"
        "  Num examples = 60,000\n"
        "  Num Epochs = 3\n"
        "  Num update steps per epoch = 1,875\n"
        "  Instantaneous batch size per device = 8\n"
        "  Total train batch size (w. parallel, distributed & accumulation) = 32\n"
        "  Gradient Accumulation steps = 2\n"
        "  Total optimization steps = 5,625\n"
        "  Number of trainable parameters = 1,199,882\n");
}

TEST_CASE("trainer_progress: a bar is full at most, where a checkpoint has more steps than are trained",
          "[runtime]") {
  acc::detail::ProgressCallback progress(/*is_terminal=*/true);
  const acc::TrainingArguments arguments;
  acc::TrainerControl control;
  const auto bar_of = [&](std::int64_t step) {
    acc::TrainerState state{.global_step = step, .max_steps = 3};
    return acc::test::printed_to(stderr, [&] {
      progress.on_train_begin(arguments, state, control);
      progress.on_train_end(arguments, state, control);
    });
  };
  const std::string full(30, '#');
  CHECK(bar_of(3).find("100% [" + full + "] 3/3") != std::string::npos);
  CHECK(bar_of(8).find("100% [" + full + "] 8/3") != std::string::npos);
}

TEST_CASE("trainer_progress: a row has decimal points, whatever the program's locale", "[runtime]") {
  const acc::test::CommaLocale locale;
  if (!locale.is_set()) return acc::test::skip("locales is missing (apt-get install locales)");
  acc::detail::ProgressCallback progress(/*is_terminal=*/false);
  const acc::TrainingArguments arguments;
  acc::TrainerState state;
  acc::TrainerControl control;
  progress.on_train_begin(arguments, state, control);
  const std::string rows =
      acc::test::printed_to(stdout, [&] { progress.on_log(arguments, state, control, {{"loss", 0.5}}); });
  CHECK(rows.find("0.500000") != std::string::npos);
}

}  // namespace trainer_progress_test
