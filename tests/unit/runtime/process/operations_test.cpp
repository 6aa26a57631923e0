// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/operations.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include <limits>
#include <map>
#include <string>

#include "acc/runtime/process/objects.hpp"
#include "support/catch.hpp"

TEST_CASE("operations: of one process, all give back what they got", "[runtime]") {
  const at::Tensor x = at::arange(3);
  CHECK(acc::gather_tensor(x, nullptr).equal(x));
  CHECK(acc::gather_tensor(at::full({}, 3), nullptr).sizes() == c10::IntArrayRef({1}));
  CHECK(acc::reduce_tensor(x, acc::ReduceOp::max, 2, nullptr).equal(x * 2));
  CHECK(acc::reduce_tensor(x, acc::ReduceOp::sum, 1, nullptr).data_ptr() != x.data_ptr());
  CHECK(acc::reduce_tensor(x, acc::ReduceOp::mean, 1, nullptr).scalar_type() == at::kFloat);
  CHECK(acc::broadcast_tensor(x, 0, nullptr).equal(x));
  CHECK(acc::pad_tensor(x, {.pad_index = 7}, nullptr).equal(x));
  CHECK(acc::gather_texts({"a", ""}, nullptr) == std::vector<std::string>{"a", ""});
  CHECK(acc::broadcast_text("a", 0, nullptr) == "a");
}

TEST_CASE("objects: what JSON can say travels without loss, infinities too", "[runtime]") {
  using Object = std::map<std::string, std::vector<double>>;
  const Object object{{"a", {0.1, std::numeric_limits<double>::infinity(), -0.0}}, {"", {}}};
  CHECK(acc::ObjectText<Object>::read(acc::ObjectText<Object>::write(object)) == object);
  const std::string zero("\0x", 2);
  CHECK(acc::ObjectText<std::string>::read(acc::ObjectText<std::string>::write(zero)) == zero);
}
