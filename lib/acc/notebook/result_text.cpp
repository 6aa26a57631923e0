// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/result_text.hpp"

#include <ATen/ops/empty.h>

#include "acc/base/error.hpp"

namespace acc::detail {
namespace {

/// What stands before the elements of a tensor.
struct TensorHead {
  at::ScalarType type = at::ScalarType::Undefined;
  std::int64_t dimensions = 0;
};

template <class T>
void append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T take(std::string_view& text) {
  T value;
  std::memcpy(&value, text.data(), sizeof value);
  text.remove_prefix(sizeof value);
  return value;
}

}  // namespace

void append_text(std::string& texts, std::string_view text) {
  append(texts, text.size());
  texts += text;
}

std::string_view next_text(std::string_view& texts) {
  const auto size = take<std::size_t>(texts);
  const std::string_view text = texts.substr(0, size);
  texts.remove_prefix(size);
  return text;
}

std::string ResultText<at::Tensor>::write(const at::Tensor& result) {
  if (!result.defined()) return {};
  if (result.layout() != at::kStrided || result.is_quantized()) {
    throw Error({.what = "a tensor that is sparse or quantized cannot be returned",
                 .where = "notebook_launcher",
                 .hint = "return it dense"});
  }
  const at::Tensor plain = result.detach().cpu().contiguous().resolve_conj().resolve_neg();
  std::string text;
  append(text, TensorHead{plain.scalar_type(), plain.dim()});
  for (const std::int64_t size : plain.sizes()) append(text, size);
  text.append(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes());
  return text;
}

at::Tensor ResultText<at::Tensor>::read(std::string_view text) {
  if (text.empty()) return {};
  const auto head = take<TensorHead>(text);
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < head.dimensions; ++i) sizes.push_back(take<std::int64_t>(text));
  at::Tensor result = at::empty(sizes, head.type);
  std::memcpy(result.mutable_data_ptr(), text.data(), text.size());
  return result;
}

}  // namespace acc::detail
