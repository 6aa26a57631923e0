// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tensors/tensor_bytes.hpp"

#include <limits>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace tensor_bytes_test {

using acc::detail::parse_tensor_bytes;
using acc::detail::TensorBytes;
using acc::detail::to_text;

namespace {

std::string refusal(const TensorBytes& tensor) {
  const std::string text = to_text(tensor);
  return acc::test::error_of([&] { parse_tensor_bytes(text, "notebook_launcher"); });
}

constexpr const char* kDamaged = "notebook_launcher: what another process sent is damaged";

}  // namespace

TEST_CASE("tensor_bytes: type, sizes and elements arrive", "[runtime]") {
  const std::string text =
      to_text(TensorBytes{.type = 6, .element_size = 4, .sizes = {2, 1}, .elements = "12345678"});
  const TensorBytes read = parse_tensor_bytes(text, "here");
  CHECK(read.type == 6);
  CHECK(read.element_size == 4);
  CHECK(read.sizes == std::vector<std::int64_t>{2, 1});
  CHECK(read.elements == "12345678");
  CHECK(refusal({.elements = "1"}) == "no error");
  CHECK(refusal({.element_size = 8, .sizes = {3, 0, 2}}) == "no error");
}

TEST_CASE("tensor_bytes: sizes that are not those of the elements are refused", "[runtime]") {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  CHECK(refusal({.sizes = {2}, .elements = "123"}).starts_with(kDamaged));
  CHECK(refusal({.sizes = {4}, .elements = "123"}).starts_with(kDamaged));
  CHECK(refusal({.sizes = {-1, -3}, .elements = "123"}).starts_with(kDamaged));
  CHECK(refusal({.sizes = {kMax, kMax}, .elements = "1"}).starts_with(kDamaged));
  CHECK(refusal({.element_size = 4, .sizes = {std::int64_t{1} << 62}}).starts_with(kDamaged));
  CHECK(refusal({.element_size = 0}).starts_with(kDamaged));
  CHECK(refusal({.element_size = std::numeric_limits<std::size_t>::max(), .elements = "1"})
            .starts_with(kDamaged));
}

TEST_CASE("tensor_bytes: wherever it is cut short, it is refused", "[runtime]") {
  const std::string text = to_text(TensorBytes{.element_size = 4, .sizes = {1}, .elements = "1234"});
  for (std::size_t size = 0; size < text.size(); ++size) {
    const std::string_view part = std::string_view(text).substr(0, size);
    CHECK(acc::test::error_of([&] { parse_tensor_bytes(part, "notebook_launcher"); }).starts_with(kDamaged));
  }
}

}  // namespace tensor_bytes_test
