// SPDX-License-Identifier: Apache-2.0
// What torchrun's agents leave in the store: the state of a rendezvous, which is the same when it is written
// again, and what they tell of their workers.
#include "acc/rendezvous/rendezvous_state.hpp"

#include "acc/rendezvous/torch_agents.hpp"
#include "fuzz/promise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using acc::launcher::read_rendezvous_state;
  const std::string_view bytes = fuzz::text_of(data, size);
  if (const auto state = fuzz::value_or_error([&] { return read_rendezvous_state(bytes); }))
    fuzz::require(read_rendezvous_state(to_pickle(*state)) == *state, "a state is written as read");
  if (const auto info = fuzz::value_or_error([&] { return acc::launcher::read_role_info(bytes); }))
    fuzz::require(acc::launcher::read_role_info(to_json(*info, 1)) == *info, "a role is written as read");
  if (const auto ranks = fuzz::value_or_error([&] { return acc::launcher::read_assigned_ranks(bytes); }))
    fuzz::require(acc::launcher::read_assigned_ranks(to_json(*ranks)) == *ranks, "ranks are written as read");
  return 0;
}
