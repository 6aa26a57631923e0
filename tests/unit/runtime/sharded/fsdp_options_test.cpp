// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/fsdp_options.hpp"

#include <string>

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace fsdp_options_test {

using acc::Environment;
using acc::detail::fsdp_options_of;

namespace {

Environment with(Environment::Variables variables) {
  variables.emplace("ACCELERATE_USE_FSDP", "true");
  return Environment(std::move(variables));
}

std::string refusal_of(const Environment& environment) {
  return acc::test::error_of([&] { fsdp_options_of(environment); });
}

}  // namespace

TEST_CASE("fsdp_options: without ACCELERATE_USE_FSDP nothing is sharded", "[runtime]") {
  CHECK_FALSE(fsdp_options_of({}));
  CHECK_FALSE(fsdp_options_of({{"ACCELERATE_USE_FSDP", "false"}, {"FSDP_VERSION", "2"}}));
  CHECK(fsdp_options_of(with({})));
}

TEST_CASE("fsdp_options: version 1 names a strategy, version 2 whether parameters are freed", "[runtime]") {
  CHECK(fsdp_options_of(with({}))->reshard_after_forward);
  CHECK(fsdp_options_of(with({{"FSDP_SHARDING_STRATEGY", "1"}}))->reshard_after_forward);
  CHECK_FALSE(fsdp_options_of(with({{"FSDP_SHARDING_STRATEGY", "SHARD_GRAD_OP"}}))->reshard_after_forward);
  CHECK_FALSE(
      fsdp_options_of(with({{"FSDP_RESHARD_AFTER_FORWARD", "shard_grad_op"}}))->reshard_after_forward);
  CHECK_FALSE(fsdp_options_of(with({{"FSDP_SHARDING_STRATEGY", "NO_SHARD"}})));
  CHECK(fsdp_options_of(with({{"FSDP_VERSION", "2"}}))->reshard_after_forward);
  CHECK_FALSE(fsdp_options_of(with({{"FSDP_VERSION", "2"}, {"FSDP_RESHARD_AFTER_FORWARD", "false"}}))
                  ->reshard_after_forward);
  CHECK(fsdp_options_of(with({{"FSDP_VERSION", "2"}, {"FSDP_SHARDING_STRATEGY", "NO_SHARD"}})));
}

TEST_CASE("fsdp_options: modules are chosen by class or by size", "[runtime]") {
  const auto by_class = fsdp_options_of(with({{"FSDP_AUTO_WRAP_POLICY", "TRANSFORMER_BASED_WRAP"},
                                              {"FSDP_TRANSFORMER_CLS_TO_WRAP", "Block, Head"},
                                              {"FSDP_MIN_NUM_PARAMS", "100000000"}}));
  CHECK(by_class->transformer_cls_to_wrap == std::vector<std::string>{"Block", "Head"});
  CHECK(by_class->min_num_params == 0);
  const auto by_size =
      fsdp_options_of(with({{"FSDP_AUTO_WRAP_POLICY", "size_based_wrap"}, {"FSDP_MIN_NUM_PARAMS", "5000"}}));
  CHECK(by_size->min_num_params == 5000);
  CHECK(fsdp_options_of(with({{"FSDP_MIN_NUM_PARAMS", "5000"}}))->min_num_params == 0);
}

TEST_CASE("fsdp_options: prefetching and ignored modules are taken over", "[runtime]") {
  CHECK(fsdp_options_of(with({{"FSDP_BACKWARD_PREFETCH", "BACKWARD_POST"}}))->prefetch);
  CHECK_FALSE(fsdp_options_of(with({{"FSDP_BACKWARD_PREFETCH", "NO_PREFETCH"}}))->prefetch);
  CHECK(fsdp_options_of(with({{"FSDP_IGNORED_MODULES", "head.*"}}))->ignored_modules == "head.*");
}

TEST_CASE("fsdp_options: states are saved in shards where accelerate would", "[runtime]") {
  const auto form_of = [](Environment::Variables variables) {
    return fsdp_options_of(with(std::move(variables)))->state_dict_type;
  };
  CHECK(form_of({}) == acc::StateDictType::full);
  CHECK(form_of({{"FSDP_VERSION", "2"}}) == acc::StateDictType::sharded);
  CHECK(form_of({{"FSDP_VERSION", "2"}, {"FSDP_STATE_DICT_TYPE", "FULL_STATE_DICT"}}) ==
        acc::StateDictType::full);
  CHECK(form_of({{"FSDP_STATE_DICT_TYPE", "sharded_state_dict"}}) == acc::StateDictType::sharded);
  CHECK(form_of({{"FSDP_STATE_DICT_TYPE", "3"}}) == acc::StateDictType::sharded);
}

TEST_CASE("fsdp_options: what is not there in C++ is refused with the way out", "[runtime]") {
  CHECK(refusal_of(with({{"FSDP_SHARDING_STRATEGY", "HYBRID_SHARD"}})) ==
        "FSDP_SHARDING_STRATEGY: HYBRID_SHARD is not there in C++ (use FULL_SHARD or SHARD_GRAD_OP)");
  CHECK(refusal_of(with({{"FSDP_OFFLOAD_PARAMS", "true"}})) ==
        "FSDP_OFFLOAD_PARAMS: parameters are not offloaded in C++ (leave fsdp_offload_params off)");
  CHECK(refusal_of(with({{"FSDP_STATE_DICT_TYPE", "LOCAL_STATE_DICT"}})) ==
        "FSDP_STATE_DICT_TYPE: LOCAL_STATE_DICT is not there in C++ (use SHARDED_STATE_DICT or "
        "FULL_STATE_DICT, which any number of processes can load)");
  CHECK(refusal_of(with({{"FSDP_ACTIVATION_CHECKPOINTING_OFFLOAD", "true"}})) ==
        "FSDP_ACTIVATION_CHECKPOINTING_OFFLOAD: what is computed again is not offloaded in C++ (leave "
        "fsdp_activation_checkpointing_offload off)");
  CHECK(refusal_of(with({{"FSDP_AUTO_WRAP_POLICY", "TRANSFORMER_BASED_WRAP"}})) ==
        "FSDP_TRANSFORMER_CLS_TO_WRAP: names no class, and a C++ model has no list of its own (give "
        "--fsdp_transformer_layer_cls_to_wrap, as in Block)");
}

TEST_CASE("fsdp_options: activation checkpointing is asked for with FSDP only", "[runtime]") {
  using acc::detail::fsdp_computes_activations_again;
  CHECK(fsdp_computes_activations_again(with({{"FSDP_ACTIVATION_CHECKPOINTING", "true"}})));
  CHECK(fsdp_computes_activations_again(
      with({{"FSDP_ACTIVATION_CHECKPOINTING", "true"}, {"FSDP_SHARDING_STRATEGY", "NO_SHARD"}})));
  CHECK_FALSE(fsdp_computes_activations_again(with({})));
  CHECK_FALSE(fsdp_computes_activations_again({{"FSDP_ACTIVATION_CHECKPOINTING", "true"}}));
}

TEST_CASE("fsdp_options: invalid values are named", "[runtime]") {
  CHECK(refusal_of(with({{"FSDP_VERSION", "3"}})) == "FSDP_VERSION: must be 1 or 2, not '3'");
  CHECK(
      refusal_of(with({{"FSDP_SHARDING_STRATEGY", "ALL"}})) ==
      "FSDP_SHARDING_STRATEGY: 'ALL' is not a strategy (FULL_SHARD, SHARD_GRAD_OP and NO_SHARD are, in C++)");
  CHECK(refusal_of(with({{"FSDP_STATE_DICT_TYPE", "SOME"}})) ==
        "FSDP_STATE_DICT_TYPE: 'SOME' is not a kind of state dict (SHARDED_STATE_DICT and FULL_STATE_DICT "
        "are, in C++)");
  CHECK(refusal_of(with({{"FSDP_AUTO_WRAP_POLICY", "BY_TASTE"}})) ==
        "FSDP_AUTO_WRAP_POLICY: 'BY_TASTE' is not a policy (TRANSFORMER_BASED_WRAP, SIZE_BASED_WRAP and "
        "NO_WRAP "
        "are)");
  CHECK(refusal_of(with({{"FSDP_IGNORED_MODULES", "head("}})) ==
        "ignored_modules: 'head(' is not a regular expression");
  CHECK(refusal_of(with({{"FSDP_OFFLOAD_PARAMS", "perhaps"}})) ==
        "FSDP_OFFLOAD_PARAMS: must be true or false, not 'perhaps'");
  const acc::FsdpOptions both{.transformer_cls_to_wrap = {"Block"}, .min_num_params = 5};
  CHECK_THROWS_AS(acc::detail::require_valid(both), acc::Error);
}

}  // namespace fsdp_options_test
