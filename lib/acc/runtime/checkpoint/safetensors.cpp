// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/safetensors.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/printable.hpp"
#include "acc/base/text.hpp"
#include "acc/formats/safetensors.hpp"

namespace acc {
namespace {

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 19> kTypes = {{
    {"F64", at::kDouble},
    {"I64", at::kLong},
    {"U64", at::kUInt64},
    {"C64", at::kComplexFloat},
    {"F32", at::kFloat},
    {"I32", at::kInt},
    {"U32", at::kUInt32},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I16", at::kShort},
    {"U16", at::kUInt16},
    {"I8", at::kChar},
    {"U8", at::kByte},
    {"BOOL", at::kBool},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"F8_E5M2", at::kFloat8_e5m2},
    {"F8_E8M0", at::kFloat8_e8m0fnu},
    {"F8_E4M3FNUZ", at::kFloat8_e4m3fnuz},
    {"F8_E5M2FNUZ", at::kFloat8_e5m2fnuz},
}};

at::ScalarType checked_type(const TensorInfo& tensor, const std::filesystem::path& file) {
  const auto* found = std::ranges::find(kTypes, tensor.dtype, [](const auto& pair) { return pair.first; });
  if (found != kTypes.end()) return found->second;
  throw Error(
      {.kind = ErrorKind::config,
       .what = fmt::format("tensor '{}' has dtype {}, of less than a byte an element, which is not read",
                           tensor.name, tensor.dtype),
       .where = file.string(),
       .hint = "convert it in Python, or leave it out of the file"});
}

// A tensor that shares the mapped file's memory, or a copy if its bytes are not aligned.
at::Tensor tensor_at(char* first, at::ScalarType type, const std::vector<std::int64_t>& shape,
                     const std::shared_ptr<MappedFile>& mapped) {
  const at::TensorOptions options(type);
  if (reinterpret_cast<std::uintptr_t>(first) % c10::elementSize(type) == 0) {
    return at::from_blob(first, shape, [mapped](void* /*data*/) {}, options);
  }
  at::Tensor copy = at::empty(shape, options);
  std::copy_n(first, copy.nbytes(), static_cast<char*>(copy.mutable_data_ptr()));
  return copy;
}

std::string_view dtype_name(at::ScalarType type, const std::string& tensor) {
  const auto* found = std::ranges::find(kTypes, type, [](const auto& pair) { return pair.second; });
  if (found != kTypes.end()) return found->first;
  throw Error({.what = fmt::format("{} cannot be written to a safetensors file", c10::toString(type)),
               .where = fmt::format("tensor '{}'", tensor),
               .hint =
                   "convert it, as in tensor.to(at::kComplexFloat); or save_state with safe_serialization "
                   "= false keeps it as it is"});
}

using Entry = std::pair<std::string, at::Tensor>;

// The order of Python's writer: by element size, largest first, so that each tensor is aligned; then by name.
std::vector<Entry> in_file_order(const NamedTensors& tensors) {
  std::vector<Entry> entries(tensors.begin(), tensors.end());
  std::ranges::stable_sort(entries, std::greater(),
                           [](const Entry& entry) { return entry.second.element_size(); });
  for (auto& [name, tensor] : entries)
    tensor = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg();
  return entries;
}

SafetensorsHeader header_of(const std::vector<Entry>& entries, const Safetensors& content) {
  SafetensorsHeader header{.metadata = content.metadata};
  std::uint64_t begin = 0;
  for (const auto& [name, tensor] : entries) {
    header.tensors.push_back({.name = name,
                              .dtype = std::string(dtype_name(tensor.scalar_type(), name)),
                              .shape = tensor.sizes().vec(),
                              .begin = begin,
                              .end = begin + tensor.nbytes()});
    begin = header.tensors.back().end;
  }
  return header;
}

}  // namespace

Safetensors read_safetensors(const std::filesystem::path& file) {
  const auto mapped = std::make_shared<MappedFile>(file);
  return detail::safetensors_in(mapped, {mapped->data(), mapped->size()}, file);
}

namespace detail {

Safetensors safetensors_in(const std::shared_ptr<MappedFile>& mapped, std::string_view part,
                           const std::filesystem::path& file) {
  const SafetensorsHeader header = parse_safetensors_header(part, file);
  char* const data = mapped->data() + (part.data() - mapped->data()) + header.data_begin;
  Safetensors content{.metadata = header.metadata};
  for (const TensorInfo& tensor : header.tensors) {
    content.tensors[tensor.name] =
        tensor_at(data + tensor.begin, checked_type(tensor, file), tensor.shape, mapped);
  }
  return content;
}

void require_utf8_name(const std::string& tensor) {
  if (is_utf8(tensor)) return;
  throw Error({.what = "the name is not UTF-8, which names in files must be",
               .where = fmt::format("tensor '{}'", printable(tensor)),
               .hint = "register the parameter or its module under another name"});
}

void require_writable(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    require_utf8_name(name);
    dtype_name(tensor.scalar_type(), name);
  }
}

}  // namespace detail

void write_safetensors(const std::filesystem::path& file, const Safetensors& content) {
  detail::require_writable(content.tensors);
  const std::vector<Entry> entries = in_file_order(content.tensors);
  const std::string header = format_safetensors_header(header_of(entries, content));
  std::vector<std::string_view> parts{header};
  for (const auto& [name, tensor] : entries) {
    parts.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  }
  replace_file(file, parts);
}

}  // namespace acc
