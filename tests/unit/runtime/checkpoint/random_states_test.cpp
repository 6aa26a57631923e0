// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/random_states.hpp"

#include <ATen/ops/rand.h>

#include "acc/runtime/checkpoint/pt_reader.hpp"
#include "acc/runtime/random.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

TEST_CASE("random states: the numbers go on where they were saved", "[runtime]") {
  acc::set_seed(3);
  at::rand({5});
  const acc::PtValue states = acc::random_states(7);
  const at::Tensor next = at::rand({5});
  CHECK(acc::load_random_states(states, "f") == 7);
  CHECK(at::rand({5}).equal(next));
}

TEST_CASE("random states: Python's are taken", "[runtime]") {
  const auto file = std::filesystem::path(ACC_TEST_DATA) / "runtime" / "pt" / "random.pt";
  CHECK(acc::load_random_states(acc::read_pt_file(file), "f") == 3);
  const at::Tensor numbers = at::rand({5});
  acc::load_random_states(acc::read_pt_file(file), "f");
  CHECK(at::rand({5}).equal(numbers));
}

TEST_CASE("random states: those of devices that are not here are left out", "[runtime]") {
  acc::PtValue states = acc::random_states(1);
  std::get<acc::PtDict>(states.content)
      .push_back({"torch_cuda_manual_seed", acc::PtList{acc::test::numbers({1, 2}, {2}, at::kByte),
                                                        acc::test::numbers({3}, {1}, at::kByte)}});
  CHECK(acc::load_random_states(states, "f") == 1);
}

TEST_CASE("random states: what is none is an error", "[runtime]") {
  const acc::PtValue none =
      GENERATE(acc::PtValue(), acc::PtValue(acc::PtDict{{"torch_manual_seed", 5}}),
               acc::PtValue(acc::PtDict{{"torch_manual_seed", acc::test::numbers({1, 2}, {2}, at::kByte)}}));
  CHECK(acc::test::error_of([&] { acc::load_random_states(none, "f"); }) ==
        "f: holds no state of LibTorch's generator");
}
