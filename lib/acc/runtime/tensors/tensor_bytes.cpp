// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tensors/tensor_bytes.hpp"

#include <algorithm>
#include <limits>

#include "acc/base/byte_reader.hpp"

namespace acc::detail {
namespace {

// The bytes of all elements; -1: no tensor has such sizes, not even one without elements.
std::int64_t bytes_of(const TensorBytes& tensor) {
  constexpr std::size_t kMaxElementSize = 16;
  if (tensor.element_size < 1 || tensor.element_size > kMaxElementSize) return -1;
  auto bytes = static_cast<std::int64_t>(tensor.element_size);
  for (const std::int64_t size : tensor.sizes) {
    if (size < 0 || (size > 0 && bytes > std::numeric_limits<std::int64_t>::max() / size)) return -1;
    bytes *= std::max<std::int64_t>(size, 1);
  }
  return std::ranges::find(tensor.sizes, 0) == tensor.sizes.end() ? bytes : 0;
}

}  // namespace

std::string to_text(const TensorBytes& tensor) {
  std::string text;
  append_number(text, tensor.type);
  append_number<std::uint64_t>(text, tensor.element_size);
  append_number<std::uint64_t>(text, tensor.sizes.size());
  for (const std::int64_t size : tensor.sizes) append_number(text, size);
  text += tensor.elements;
  return text;
}

TensorBytes parse_tensor_bytes(std::string_view text, std::string_view where) {
  ByteReader reader(text, where);
  TensorBytes tensor{.type = reader.number<std::int64_t>(), .element_size = reader.number<std::uint64_t>()};
  for (std::size_t left = reader.count(sizeof(std::int64_t)); left > 0; --left)
    tensor.sizes.push_back(reader.number<std::int64_t>());
  tensor.elements = reader.take_rest();
  if (bytes_of(tensor) != std::ssize(tensor.elements)) reader.fail();
  return tensor;
}

}  // namespace acc::detail
