// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/join_machine.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "acc/base/machine.hpp"
#include "acc/runtime/comm/cpu/handover.hpp"

namespace acc::detail {
namespace {

using Tensors = std::vector<at::Tensor>;

std::string offer_key(int rank) {
  return fmt::format("acc/shared_memory/{}", rank);
}

// Whether `yes` is true on all ranks.
bool all_agree(c10d::Backend& gloo, bool yes) {
  Tensors votes{at::ones({1}, at::kByte).mul_(yes ? 1 : 0)};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MIN;
  gloo.allreduce(votes, options)->wait();
  return votes[0].item<bool>();
}

// Equal where processes reach each other's abstract sockets: in one network namespace since one start of the
// kernel. Never 0.
std::int64_t machine_number() {
  std::error_code ignored;
  const std::string network = std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
  const auto hash = std::hash<std::string>()(first_line_of("/proc/sys/kernel/random/boot_id") + network);
  return static_cast<std::int64_t>(hash | 1U);
}

// The machine number of each rank, or 0 where shared memory is not wanted.
std::vector<std::int64_t> machine_numbers(c10d::Backend& gloo, bool enabled) {
  const auto size = static_cast<std::size_t>(gloo.getSize());
  Tensors contribution{at::full({1}, enabled ? machine_number() : 0, at::kLong)};
  std::vector<Tensors> gathered(1);
  for (std::size_t rank = 0; rank < size; ++rank) gathered[0].push_back(at::empty({1}, at::kLong));
  gloo.allgather(gathered, contribution)->wait();
  std::vector<std::int64_t> numbers;
  for (const at::Tensor& number : gathered[0]) numbers.push_back(number.item<std::int64_t>());
  return numbers;
}

// Null without memory, or with a lost process, of which Gloo tells.
std::shared_ptr<MemoryGroup> share_with(const std::vector<int>& names, int rank, Handover& handover,
                                        std::chrono::milliseconds timeout) {
  const auto size = static_cast<int>(names.size());
  try {
    auto [descriptor, processes] = handover.exchange([size] { return Segment::create(size); }, timeout);
    MemoryGroup::Ranks ranks{.rank = rank,
                             .size = size,
                             .names = names,
                             .processes = std::move(processes),
                             .core_for_each = allowed_cores() >= size};
    return {new MemoryGroup(descriptor, std::move(ranks)), OffThreadDelete<MemoryGroup>()};
  } catch (const std::exception&) {  // NOLINT: the other ranks are told that there is no memory
    return nullptr;
  }
}

}  // namespace

std::vector<std::vector<int>> ranks_of_machines(const std::vector<std::int64_t>& numbers) {
  std::vector<std::vector<int>> machines;
  for (std::size_t rank = 0; rank < numbers.size(); ++rank) {
    const auto match = std::ranges::find_if(machines, [&](const std::vector<int>& machine) {
      return numbers[static_cast<std::size_t>(machine.front())] == numbers[rank];
    });
    if (match == machines.end()) {
      machines.push_back({static_cast<int>(rank)});
    } else {
      match->push_back(static_cast<int>(rank));
    }
  }
  return machines;
}

void announce(c10d::Store& store, int rank, const Handover& handover) {
  store.set(offer_key(rank), handover.address());
}

bool all_announced(c10d::Store& store, int size) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < size; ++rank) keys.push_back(offer_key(rank));
  return store.check(keys);
}

std::optional<Machine> join_machine(c10d::Backend& gloo, c10d::Store& store, Handover& handover,
                                    std::chrono::milliseconds timeout, bool enabled,
                                    const ConnectLeaders& connect_leaders) {
  const int rank = gloo.getRank();
  const std::vector<std::int64_t> numbers = machine_numbers(gloo, enabled);
  const auto machines = ranks_of_machines(numbers);
  if (std::ranges::count(numbers, 0) > 0 || machines.size() == numbers.size()) return std::nullopt;

  const auto own_ranks = std::ranges::find_if(
      machines, [rank](const std::vector<int>& ranks) { return std::ranges::count(ranks, rank) > 0; });
  const auto position = static_cast<int>(std::ranges::find(*own_ranks, rank) - own_ranks->begin());
  const bool alone = own_ranks->size() == 1;
  const bool connected = alone || handover.connect(position, static_cast<int>(own_ranks->size()),
                                                   store.get_to_str(offer_key(own_ranks->front())));
  if (!all_agree(gloo, connected)) return std::nullopt;
  Machine machine{.memory = alone ? nullptr : share_with(*own_ranks, position, handover, timeout),
                  .has_all_ranks = machines.size() == 1};
  if (!all_agree(gloo, alone || machine.memory)) return std::nullopt;
  if (machines.size() > 1 && position == 0) {
    machine.leader.reset(new MachineLeader(
        machine.memory,
        connect_leaders(static_cast<int>(own_ranks - machines.begin()), static_cast<int>(machines.size()))));
  }
  return machine;
}

}  // namespace acc::detail
