// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/one_core.hpp"

#include <ATen/Parallel.h>

#include <optional>
#include <thread>

#include "support/catch.hpp"

TEST_CASE("one_core: the thread that asked uses itself alone, and afterwards what it used before",
          "[runtime]") {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  std::optional<acc::OneCore> one_core(std::in_place);
  CHECK(at::get_num_threads() == 1);
  int elsewhere = 0;
  std::thread([&] { elsewhere = at::get_num_threads(); }).join();
  CHECK(elsewhere == 3);
  one_core.reset();
  CHECK(at::get_num_threads() == 3);
  at::set_num_threads(before);
}
