// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <array>

#include "checks.hpp"

namespace acc::selftest {
namespace {

constexpr std::array<at::ScalarType, 9> kTypes = {
    at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kChar, at::kByte, at::kInt, at::kLong, at::kBool};

// What rank `rank` gives: different on each rank, and exact in every type for 100 ranks and more.
at::Tensor given_by(int rank, at::ScalarType type) {
  return at::full({3, 2}, 1 + rank % 2, at::kInt).to(type);
}

at::Tensor expected_sum(int size, at::ScalarType type) {
  at::Tensor sum = given_by(0, type).clone();
  for (int rank = 1; rank < size; ++rank) sum = sum.add(given_by(rank, type));
  return sum;
}

Complaint check_type(Accelerator& accelerator, at::ScalarType type) {
  const int size = accelerator.num_processes();
  const int last = size - 1;
  const at::Tensor own = given_by(accelerator.process_index(), type);
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(given_by(rank, type));

  if (!accelerator.gather(own).equal(at::cat(all))) return "gather";
  if (!accelerator.broadcast(own, last).equal(all.back())) return "broadcast";
  if (!accelerator.reduce(own, ReduceOp::max).equal(std::get<0>(at::stack(all).max(0)))) return "reduce max";
  // The sum of truths is no truth.
  if (type != at::kBool && !accelerator.reduce(own).equal(expected_sum(size, type))) return "reduce sum";
  return {};
}

}  // namespace

Complaint check_collectives(Accelerator& accelerator) {
  for (const at::ScalarType type : kTypes) {
    if (const Complaint wrong = check_type(accelerator, type); !wrong.empty()) {
      return wrong + " is wrong for " + c10::toString(type);
    }
  }
  const double size = accelerator.num_processes();
  const at::Tensor mean =
      accelerator.reduce(at::full({}, accelerator.process_index(), at::kDouble), ReduceOp::mean);
  return mean.item<double>() == (size - 1) / 2 ? "" : "reduce mean is wrong";
}

}  // namespace acc::selftest
