// SPDX-License-Identifier: Apache-2.0
// Each rank is a thread with a mapping and a group of its own, as a process would have.
#include "acc/runtime/comm/cpu/memory_group.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "acc/runtime/comm/cpu/off_thread.hpp"
#include "support/catch.hpp"

namespace memory_group_test {

namespace {

using namespace std::chrono_literals;
using acc::Descriptor;
using acc::detail::Collective;
using acc::detail::MemoryGroup;
using acc::detail::OffThreadDelete;
using acc::detail::Segment;
using Kind = Collective::Kind;

constexpr std::size_t kChunkFloats = Segment::kChunkBytes / sizeof(float);

std::unique_ptr<MemoryGroup> group_of(const Descriptor& memory, int rank, int size) {
  MemoryGroup::Ranks ranks{.rank = rank, .size = size};
  for (int other = 0; other < size; ++other)
    ranks.processes.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  return std::make_unique<MemoryGroup>(memory, std::move(ranks));
}

// Calls `work` for each rank on a thread of its own, and returns what they return.
template <class Work>
auto on_ranks(int size, Work work) {
  using Result = decltype(work(std::declval<MemoryGroup&>(), 0));
  const Descriptor memory = Segment::create(size);
  std::vector<std::future<Result>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&memory, &work, rank, size] {
      const auto group = group_of(memory, rank, size);
      return work(*group, rank);
    }));
  }
  std::vector<Result> results;
  for (auto& rank : ranks) results.push_back(rank.get());
  return results;
}

template <class T>
std::byte* bytes_of(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

Collective sum_of(std::vector<float>& values, std::chrono::milliseconds timeout = 1min) {
  return {.kind = Kind::all_reduce,
          .data = bytes_of(values),
          .bytes = values.size() * sizeof(float),
          .type = c10::ScalarType::Float,
          .timeout = timeout};
}

std::vector<float> values_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = 1.0F / static_cast<float>(i % 1009 + static_cast<std::size_t>(rank) + 1);
  return values;
}

// An Error, which a program catches even if nothing translates it.
std::string failure_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const acc::Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("memory_group: an all-reduce adds in the order of the ranks, whatever its size", "[runtime]") {
  const int size = GENERATE(2, 3, 4, 5);
  const std::size_t count = GENERATE(as<std::size_t>(), 0, 1, 1000, kChunkFloats, kChunkFloats + 1,
                                     3 * Segment::kSlots * kChunkFloats + 7);
  std::vector<float> expected = values_of(0, count);
  for (int rank = 1; rank < size; ++rank) {
    const std::vector<float> values = values_of(rank, count);
    for (std::size_t i = 0; i < count; ++i) expected[i] += values[i];
  }
  for (const auto& result : on_ranks(size, [&](MemoryGroup& group, int rank) {
         std::vector<float> values = values_of(rank, count);
         group.wait(group.begin(sum_of(values)), std::nullopt);
         return values;
       }))
    CHECK(result == expected);
}

TEST_CASE(
    "memory_group: a rank does not overwrite what it has not read itself, whatever it sees of the others",
    "[runtime]") {
  const Descriptor memory = Segment::create(2);
  const Segment other(memory, 2);
  std::vector<float> values = values_of(0, (Segment::kSlots + 1) * kChunkFloats);
  const auto group = group_of(memory, 0, 2);
  // Counters are read one after the other: the first may be from before the other rank posted a chunk, the
  // second from after it consumed it.
  other.progress(1).consumed = 1;
  group->begin(sum_of(values));
  CHECK(other.progress(0).posted == Segment::kSlots);
}

TEST_CASE("memory_group: operations are done in the order in which they begin", "[runtime]") {
  const int size = GENERATE(2, 3);
  for (const std::string& result : on_ranks(size, [size](MemoryGroup& group, int rank) -> std::string {
         std::vector<float> sum = values_of(rank, 20 * kChunkFloats);
         std::vector<int> collective(50'000, rank);
         std::vector<std::vector<int>> all(static_cast<std::size_t>(size),
                                           std::vector<int>(collective.size()));
         std::vector<int> from_last(collective.size(), rank);
         Collective gather{.kind = Kind::all_gather,
                           .data = bytes_of(collective),
                           .bytes = collective.size() * sizeof(int),
                           .timeout = 1min};
         for (auto& values : all) gather.gathered.push_back(bytes_of(values));
         std::string order;
         std::promise<void> last_is_done;
         const auto note = [&](Collective what, const char* name) {
           what.done = [&order, name](const std::exception_ptr& failure) {
             order += failure ? "failed" : name;
           };
           return what;
         };
         group.begin(note(sum_of(sum), "sum"));
         group.begin(note(gather, "gather"));
         group.begin(note({.kind = Kind::broadcast,
                           .data = bytes_of(from_last),
                           .bytes = from_last.size() * sizeof(int),
                           .root = size - 1,
                           .timeout = 1min},
                          "broadcast"));
         group.begin({.timeout = 1min, .done = [&](const std::exception_ptr&) { last_is_done.set_value(); }});
         group.hurry();
         last_is_done.get_future().wait();
         for (int other = 0; other < size; ++other) {
           if (all[static_cast<std::size_t>(other)] != std::vector<int>(collective.size(), other))
             return "gathered something else";
         }
         if (from_last != std::vector<int>(collective.size(), size - 1)) return "received something else";
         return order;
       }))
    CHECK(result == "sumgatherbroadcast");
}

TEST_CASE("memory_group: an all-to-all gives each rank its part of all others", "[runtime]") {
  const int size = GENERATE(1, 2, 3, 5);
  const std::size_t count =
      GENERATE(as<std::size_t>(), 0, 1, kChunkFloats, 3 * Segment::kSlots * kChunkFloats + 7);
  const auto part = [count](int from, int to) { return values_of(10 * from + to, count); };
  for (const std::string& result : on_ranks(size, [&](MemoryGroup& group, int rank) -> std::string {
         std::vector<std::vector<float>> sources;
         std::vector<std::vector<float>> received(static_cast<std::size_t>(size),
                                                  std::vector<float>(count, -1));
         Collective exchange{.kind = Kind::all_to_all, .bytes = count * sizeof(float), .timeout = 1min};
         for (int to = 0; to < size; ++to) sources.push_back(part(rank, to));
         for (std::size_t other = 0; other < sources.size(); ++other) {
           exchange.sources.push_back(bytes_of(sources[other]));
           exchange.gathered.push_back(bytes_of(received[other]));
         }
         group.wait(group.begin(std::move(exchange)), std::nullopt);
         for (int from = 0; from < size; ++from) {
           const auto& source = received[static_cast<std::size_t>(from)];
           if (from == rank ? source != std::vector<float>(count, -1) : source != part(from, rank))
             return "took something else";
         }
         return "right";
       }))
    CHECK(result == "right");
}

TEST_CASE("memory_group: what nobody waits for is done by the group's thread", "[runtime]") {
  on_ranks(2, [](MemoryGroup& group, int rank) {
    std::vector<float> values = values_of(rank, 20 * kChunkFloats);
    std::promise<void> done;
    Collective sum = sum_of(values);
    sum.done = [&](const std::exception_ptr&) { done.set_value(); };
    group.begin(std::move(sum));
    group.hurry();
    done.get_future().wait();
    return 0;
  });
}

TEST_CASE("memory_group: a rank that leaves fails those who need it, and after that all they begin",
          "[runtime]") {
  const int size = GENERATE(2, 3);
  const auto failures = on_ranks(size, [](MemoryGroup& group, int rank) -> std::string {
    std::vector<float> values(10);
    group.wait(group.begin(sum_of(values)), std::nullopt);
    if (rank == 1) return "left";
    std::promise<bool> failed;
    Collective next = sum_of(values);
    next.done = [&](const std::exception_ptr& failure) { failed.set_value(failure != nullptr); };
    const auto number = group.begin(std::move(next));
    std::string text = failure_of([&] { group.wait(number, std::nullopt); });
    if (!failed.get_future().get()) return "its callback was told of no failure";
    if (failure_of([&] { group.wait(group.begin({.timeout = 1min}), std::nullopt); }) != text)
      return "went on";
    return text.substr(0, text.find(':'));
  });
  for (std::size_t rank = 0; rank < failures.size(); ++rank)
    CHECK(failures[rank] == (rank == 1 ? "left" : "Connection closed by peer"));
}

TEST_CASE("memory_group: who gets what the others posted does not need them any longer", "[runtime]") {
  const Descriptor memory = Segment::create(2);
  const auto first = group_of(memory, 0, 2);
  std::vector<float> values(10, 1.0F);
  {
    const auto second = group_of(memory, 1, 2);
    std::vector<float> others(10, 2.0F);
    second->begin(sum_of(others));
  }
  first->wait(first->begin(sum_of(values)), std::nullopt);
  CHECK(values == std::vector<float>(10, 3.0F));
}

TEST_CASE("memory_group: a rank that does not call in time fails the others", "[runtime]") {
  const Descriptor memory = Segment::create(2);
  const auto first = group_of(memory, 0, 2);
  const auto second = group_of(memory, 1, 2);
  std::vector<float> values(10);
  const auto number = first->begin(sum_of(values, 100ms));
  CHECK_FALSE(first->wait(number, 1ms));
  CHECK(failure_of([&] { first->wait(number, std::nullopt); }) == "Timed out waiting 100 ms for rank 1");
  CHECK(failure_of([&] { second->wait(second->begin(sum_of(values)), std::nullopt); }) == "none");
  CHECK(failure_of([&] { second->wait(second->begin(sum_of(values)), std::nullopt); }) ==
        "Connection closed by peer: rank 0");
}

TEST_CASE("memory_group: ranks that call different operations are told so", "[runtime]") {
  const auto failures = on_ranks(2, [](MemoryGroup& group, int rank) {
    std::vector<float> values(rank == 0 ? 10 : 20);
    Collective collective = sum_of(values);
    if (rank == 0) collective.combination = acc::detail::Combination::max;
    return failure_of([&] { group.wait(group.begin(std::move(collective)), std::nullopt); });
  });
  const bool first_knows =
      failures[0] ==
      "the processes do not make the same calls: rank 0 calls all_reduce (max of Float) of 40 bytes, rank 1 "
      "calls all_reduce (sum of Float) of 80 bytes";
  const bool second_knows =
      failures[1] ==
      "the processes do not make the same calls: rank 1 calls all_reduce (sum of Float) of 80 bytes, rank 0 "
      "calls all_reduce (max of Float) of 40 bytes";
  CHECK((first_knows || second_knows));
  CHECK((first_knows || failures[0].starts_with("Connection closed by peer")));
  CHECK((second_knows || failures[1].starts_with("Connection closed by peer")));
}

TEST_CASE(
    "memory_group: a broadcast with another root is noticed by what needs all ranks, or some chunks later",
    "[runtime]") {
  const int size = GENERATE(2, 3);
  const bool barrier_follows = GENERATE(true, false);
  for (const std::string& failure : on_ranks(size, [barrier_follows](MemoryGroup& group, int rank) {
         std::vector<float> values(barrier_follows ? 10 : 2 * Segment::kSlots * kChunkFloats);
         return failure_of([&] {
           const auto number = group.begin({.kind = Kind::broadcast,
                                            .data = bytes_of(values),
                                            .bytes = values.size() * sizeof(float),
                                            .root = rank == 1 ? 1 : 0,
                                            .timeout = 1min});
           group.wait(barrier_follows ? group.begin({.timeout = 1min}) : number, std::nullopt);
         });
       })) {
    INFO(failure);
    CHECK((failure.starts_with("the processes do not make the same calls: rank ") ||
           failure.starts_with("Connection closed by peer")));
  }
}

TEST_CASE("memory_group: a callback may drop the last reference to its group", "[runtime]") {
  const Descriptor memory = Segment::create(2);
  const Collective barrier{.kind = Kind::barrier, .timeout = 1min};
  std::shared_ptr<MemoryGroup> first(group_of(memory, 0, 2).release(), OffThreadDelete<MemoryGroup>());
  const auto second = group_of(memory, 1, 2);
  std::promise<bool> called;
  Collective last = barrier;
  last.done = [&called, held = first](const std::exception_ptr&) { called.set_value(held->is_own_thread()); };
  first->begin(std::move(last));
  first.reset();
  second->wait(second->begin(barrier), std::nullopt);
  CHECK(called.get_future().get());
  // It has left.
  CHECK(failure_of([&] { second->wait(second->begin(barrier), std::nullopt); }) ==
        "Connection closed by peer: rank 0");
}

}  // namespace memory_group_test
