// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/accelerator/settings_agreement.hpp"

#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace settings_agreement_test {

using acc::MixedPrecision;
using acc::detail::find_disagreement;
using acc::detail::shared_settings;

TEST_CASE("settings_agreement: equal settings are no error, whatever else differs", "[runtime]") {
  const auto first = shared_settings({.project_dir = "here"}, MixedPrecision::no, 1);
  const auto second = shared_settings({.allow_unprepared_parameters = true}, MixedPrecision::no, 1);
  CHECK_FALSE(find_disagreement({first, second, first}));
}

TEST_CASE("settings_agreement: the first setting that differs is named, with both values", "[runtime]") {
  const auto plain = shared_settings({}, MixedPrecision::no, 4);
  const auto message = [&](const acc::detail::SharedSettings& other) {
    return std::string(find_disagreement({plain, plain, other}).value().what());
  };
  CHECK(message(shared_settings({}, MixedPrecision::bf16, 4)) ==
        "mixed_precision: is no on rank 0, and bf16 on rank 2 (give all processes the same options, and all "
        "nodes the same configuration)");
  CHECK(message(shared_settings({}, MixedPrecision::no, 1))
            .starts_with("gradient_accumulation_steps: is 4 on rank 0, and 1 on rank 2 ("));
  CHECK(message(shared_settings({.dispatch_batches = false}, MixedPrecision::no, 4))
            .starts_with("dispatch_batches: is not set on rank 0, and false on rank 2 ("));
  CHECK(message(shared_settings({.ddp = {.comm_hook = acc::CommHook::fp16}}, MixedPrecision::no, 4))
            .starts_with("ddp.comm_hook: is none on rank 0, and fp16 on rank 2 ("));
}

TEST_CASE("settings_agreement: which modules are not sharded is compared, and there what is recomputed",
          "[runtime]") {
  const auto sharded = [](const std::string& ignored, std::optional<bool> recomputes) {
    return shared_settings(
        {.fsdp = acc::FsdpOptions{.ignored_modules = ignored}, .activation_checkpointing = recomputes},
        MixedPrecision::no, 1);
  };
  const auto message = [&](const acc::detail::SharedSettings& other) {
    return std::string(find_disagreement({sharded("", {}), other}).value().what());
  };
  CHECK(message(sharded("head", {}))
            .starts_with("fsdp.ignored_modules: is empty on rank 0, and head on rank 1 ("));
  CHECK(message(sharded("", true))
            .starts_with("activation_checkpointing: is not set on rank 0, and true on rank 1 ("));
  // Under DDP a process with less memory may recompute alone.
  CHECK_FALSE(
      find_disagreement({shared_settings({}, MixedPrecision::no, 1),
                         shared_settings({.activation_checkpointing = true}, MixedPrecision::no, 1)}));
}

TEST_CASE("settings_agreement: a setting that another version does not have differs", "[runtime]") {
  auto shorter = shared_settings({}, MixedPrecision::no, 1);
  const std::string last = shorter.back().first;
  shorter.pop_back();
  const auto error = find_disagreement({shared_settings({}, MixedPrecision::no, 1), shorter});
  CHECK(error.value().problems().front().where == last);
  CHECK(error.value().problems().front().what.ends_with("and unknown on rank 1"));
}

TEST_CASE("settings_agreement: a process that shards has other settings than one that does not",
          "[runtime]") {
  const auto error = find_disagreement({shared_settings({.fsdp = acc::FsdpOptions{}}, MixedPrecision::no, 1),
                                        shared_settings({}, MixedPrecision::no, 1)});
  CHECK(std::string(error.value().what()).starts_with("use_fsdp: is true on rank 0, and false on rank 1 ("));
}

}  // namespace settings_agreement_test
