// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/batch_source.hpp"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <latch>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/catch.hpp"

namespace batch_source_test {

TEST_CASE("one_core: operations use one thread, and afterwards as many as before", "[runtime]") {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  std::optional<acc::detail::OneCore> one_core(std::in_place);
  CHECK(at::get_num_threads() == 1);
  int elsewhere = 0;
  std::thread([&] { elsewhere = at::get_num_threads(); }).join();
  CHECK(elsewhere == 3);
  one_core.reset();
  CHECK(at::get_num_threads() == 3);
  at::set_num_threads(before);
}

namespace {

using acc::detail::OrderedWorkers;

std::vector<std::size_t> slots_of(OrderedWorkers& workers) {
  std::vector<std::size_t> slots;
  while (const auto slot = workers.wait()) {
    slots.push_back(*slot);
    workers.release();
  }
  return slots;
}

}  // namespace

TEST_CASE("ordered_workers: items are returned in order, whichever is produced first", "[runtime]") {
  // Item 0 is made only when item 1 is.
  std::latch second(1);
  OrderedWorkers workers(2, 2, 0, [&](std::size_t index, std::size_t /*worker*/) {
    if (index == 0) second.wait();
    if (index == 1) second.count_down();
    return index < 5;
  });
  CHECK(slots_of(workers) == std::vector<std::size_t>{0, 1, 0, 1, 0});
  CHECK_FALSE(workers.wait());
}

TEST_CASE("ordered_workers: no more items are produced ahead than allowed", "[runtime]") {
  std::array<std::latch, 3> begun{std::latch(1), std::latch(1), std::latch(1)};
  std::atomic<std::size_t> number = 0;
  OrderedWorkers workers(3, 2, 0, [&](std::size_t index, std::size_t /*worker*/) {
    ++number;
    if (index < begun.size()) begun[index].count_down();
    return true;
  });
  begun[0].wait();
  begun[1].wait();
  CHECK(number == 2);
  CHECK(workers.wait() == 0);
  CHECK(number == 2);
  workers.release();
  begun[2].wait();
  CHECK(workers.wait() == 1);
  CHECK(number == 3);
}

TEST_CASE("ordered_workers: an exception is thrown after the items before it and ends them", "[runtime]") {
  OrderedWorkers workers(3, 6, 2, [](std::size_t index, std::size_t /*worker*/) {
    if (index >= 4) throw std::runtime_error("item " + std::to_string(index));
    return true;
  });
  CHECK(workers.wait() == 2);
  workers.release();
  CHECK(workers.wait() == 3);
  workers.release();
  CHECK_THROWS_WITH(workers.wait(), "item 4");
  CHECK_FALSE(workers.wait());
}

TEST_CASE("ordered_workers: destroying them early ends them at once", "[runtime]") {
  std::atomic<std::size_t> running = 0;
  {
    OrderedWorkers workers(4, 8, 0, [&](std::size_t /*index*/, std::size_t /*worker*/) {
      ++running;
      --running;
      return true;
    });
    CHECK(workers.wait() == 0);
  }
  CHECK(running == 0);
}

TEST_CASE("ordered_workers: a worker uses one thread, and the program keeps its number of threads",
          "[runtime]") {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  std::atomic<int> in_worker = 0;
  {
    OrderedWorkers workers(1, 1, 0, [&](std::size_t /*index*/, std::size_t /*worker*/) {
      in_worker = at::get_num_threads();
      return true;
    });
    workers.wait();
  }
  CHECK(in_worker == 1);
  CHECK(at::get_num_threads() == 3);
  at::set_num_threads(before);
}

}  // namespace batch_source_test
