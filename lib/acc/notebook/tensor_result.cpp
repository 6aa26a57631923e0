// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/tensor_result.hpp"

#include "acc/base/error.hpp"
#include "acc/runtime/tensors/tensor_text.hpp"

namespace acc::detail {
namespace {

constexpr const char* kWhere = "notebook_launcher";

}  // namespace

std::string ResultText<at::Tensor>::write(const at::Tensor& result) {
  if (result.defined() && (result.layout() != at::kStrided || result.is_quantized())) {
    throw Error({.what = "a tensor that is sparse or quantized cannot be returned",
                 .where = kWhere,
                 .hint = "return it dense"});
  }
  return text_of_tensor(result);
}

at::Tensor ResultText<at::Tensor>::read(std::string_view text) {
  return tensor_of_text(text, kWhere);
}

}  // namespace acc::detail
