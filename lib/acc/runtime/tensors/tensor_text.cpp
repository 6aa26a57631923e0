// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tensors/tensor_text.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>

#include <cstring>

#include "acc/base/byte_reader.hpp"
#include "acc/runtime/tensors/tensor_bytes.hpp"

namespace acc::detail {
namespace {

// Whether LibTorch makes plain tensors of this type.
bool is_type(const TensorBytes& tensor) {
  if (tensor.type < 0 || tensor.type >= static_cast<std::int64_t>(at::ScalarType::NumOptions)) return false;
  const auto type = static_cast<at::ScalarType>(tensor.type);
  return type != at::ScalarType::Undefined && !at::isQIntType(type) &&
         at::elementSize(type) == tensor.element_size;
}

}  // namespace

std::string text_of_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor plain = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg();
  return to_text(TensorBytes{.type = static_cast<std::int64_t>(plain.scalar_type()),
                             .element_size = at::elementSize(plain.scalar_type()),
                             .sizes = plain.sizes().vec(),
                             .elements = {static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()}});
}

at::Tensor tensor_of_text(std::string_view text, std::string_view where) {
  if (text.empty()) return {};
  const TensorBytes bytes = parse_tensor_bytes(text, where);
  if (!is_type(bytes)) ByteReader(text, where).fail();
  at::Tensor tensor = at::empty(bytes.sizes, static_cast<at::ScalarType>(bytes.type));
  if (!bytes.elements.empty())
    std::memcpy(tensor.mutable_data_ptr(), bytes.elements.data(), bytes.elements.size());
  return tensor;
}

}  // namespace acc::detail
