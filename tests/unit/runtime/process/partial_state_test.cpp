// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/partial_state.hpp"

#include <optional>

#include "support/catch.hpp"

namespace partial_state_test {

TEST_CASE("partial_state: without a launcher it is the only process, the first and the last", "[runtime]") {
  const acc::PartialState state;
  CHECK(state.num_processes() == 1);
  CHECK(state.is_main_process());
  CHECK(state.is_local_main_process());
  CHECK(state.is_last_process());
  CHECK_FALSE(state.distributed());
  CHECK(state.distributed_type() == acc::DistributedType::no);
  CHECK(state.device() == at::Device(at::kCPU));
  CHECK(state.process_group() == nullptr);
  state.wait_for_everyone();
  int calls = 0;
  state.main_process_first([&] { ++calls; });
  state.local_main_process_first([&] { ++calls; });
  CHECK(calls == 2);
}

TEST_CASE("partial_state: a process has joined a job while it has a state or a copy of one", "[runtime]") {
  CHECK_FALSE(acc::detail::has_joined_job());
  std::optional<acc::PartialState> state;
  state.emplace();
  std::optional<acc::PartialState> copy = state;
  state.reset();
  CHECK(acc::detail::has_joined_job());
  copy.reset();
  CHECK_FALSE(acc::detail::has_joined_job());
}

}  // namespace partial_state_test
