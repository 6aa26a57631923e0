// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/batch_parts.hpp"

#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/operations.hpp"

namespace acc::detail {
namespace {

constexpr const char* kWhere = "dispatch_batches";

std::string text_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor content = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
  std::array<std::int64_t, kFormSize> form{};
  write_form(content, form.data(), kWhere);
  std::string text(sizeof(form) + content.nbytes(), '\0');
  std::memcpy(text.data(), form.data(), sizeof(form));
  if (content.nbytes() > 0)
    std::memcpy(text.data() + sizeof(form), content.const_data_ptr(), content.nbytes());
  return text;
}

at::Tensor tensor_of(std::string_view text) {
  if (text.empty()) return {};
  std::array<std::int64_t, kFormSize> form{};
  std::memcpy(form.data(), text.data(), sizeof(form));
  at::Tensor tensor = empty_of_form(form.data());
  if (tensor.nbytes() > 0)
    std::memcpy(tensor.mutable_data_ptr(), text.data() + sizeof(form), tensor.nbytes());
  return tensor;
}

bool fit(const BatchParts& one, const BatchParts& other) {
  return one.common == other.common && one.lists.size() == other.lists.size() &&
         std::ranges::equal(one.tensors, other.tensors, [](const at::Tensor& a, const at::Tensor& b) {
           return a.sizes().slice(1) == b.sizes().slice(1);
         });
}

}  // namespace

void append_number(std::string& text, std::uint64_t number) {
  text += ObjectText<std::uint64_t>::write(number);
}

void append_text(std::string& text, std::string_view part) {
  append_number(text, part.size());
  text += part;
}

std::uint64_t read_number(std::string_view& text) {
  const auto number = ObjectText<std::uint64_t>::read(text);
  text.remove_prefix(sizeof(number));
  return number;
}

std::string_view read_text(std::string_view& text) {
  const std::size_t size = read_number(text);
  const std::string_view part = text.substr(0, size);
  text.remove_prefix(size);
  return part;
}

void require_tensor_count(std::size_t expected, std::size_t actual) {
  if (expected == actual) return;
  throw Error(
      {.what = fmt::format("a batch's type with its own for_each_tensor holds {} tensors, but {} when it "
                           "is default-constructed",
                           actual, expected),
       .where = kWhere,
       .hint = "let batches be tuples, vectors or maps, or set dispatch_batches to false"});
}

std::string to_text(const BatchParts& parts) {
  std::string text;
  append_text(text, parts.common);
  append_number(text, parts.lists.size());
  for (const auto& list : parts.lists) {
    append_number(text, list.size());
    for (const std::string& element : list) append_text(text, element);
  }
  append_number(text, parts.tensors.size());
  for (const at::Tensor& tensor : parts.tensors) append_text(text, text_of(tensor));
  return text;
}

BatchParts parts_of_text(std::string_view text) {
  BatchParts parts{.common = std::string(read_text(text))};
  parts.lists.resize(read_number(text));
  for (auto& list : parts.lists) {
    list.resize(read_number(text));
    for (std::string& element : list) element = read_text(text);
  }
  parts.tensors.resize(read_number(text));
  for (at::Tensor& tensor : parts.tensors) tensor = tensor_of(read_text(text));
  return parts;
}

std::size_t count_rows(const BatchParts& parts) {
  std::vector<std::size_t> rows;
  for (const at::Tensor& tensor : parts.tensors) {
    if (!tensor.defined() || tensor.dim() == 0)
      throw Error(
          {.what = "a tensor of a batch is undefined or 0-dimensional: it has no rows", .where = kWhere});
    rows.push_back(static_cast<std::size_t>(tensor.size(0)));
  }
  for (const auto& list : parts.lists) rows.push_back(list.size());
  if (rows.empty())
    throw Error({.what = "a batch needs a tensor or a vector, to have rows", .where = kWhere});
  if (!std::ranges::all_of(rows, [&](std::size_t one) { return one == rows.front(); })) {
    throw Error(
        {.what = "every tensor and vector of a batch needs the same number of rows", .where = kWhere});
  }
  return rows.front();
}

BatchParts slice_rows(const BatchParts& parts, std::size_t begin, std::size_t length) {
  BatchParts rows{.common = parts.common};
  for (const at::Tensor& tensor : parts.tensors) {
    rows.tensors.push_back(
        tensor.slice(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(begin + length)));
  }
  for (const auto& list : parts.lists) {
    const auto iterator_at = [&](std::size_t row) {
      return list.begin() + static_cast<std::ptrdiff_t>(std::min(row, list.size()));
    };
    rows.lists.emplace_back(iterator_at(begin), iterator_at(begin + length));
  }
  return rows;
}

BatchParts concatenate(const std::vector<BatchParts>& batches) {
  if (batches.size() == 1) return batches.front();
  BatchParts whole = batches.front();
  for (std::size_t i = 1; i < batches.size(); ++i) {
    if (!fit(whole, batches[i])) {
      throw Error({.what = "batches of different shapes, keys or values cannot be concatenated",
                   .where = kWhere,
                   .hint = "set dispatch_batches to false, or split_batches to true"});
    }
    for (std::size_t list = 0; list < whole.lists.size(); ++list)
      whole.lists[list].insert(whole.lists[list].end(), batches[i].lists[list].begin(),
                               batches[i].lists[list].end());
  }
  for (std::size_t column = 0; column < whole.tensors.size(); ++column) {
    std::vector<at::Tensor> rows;
    for (const BatchParts& batch : batches) rows.push_back(batch.tensors[column]);
    whole.tensors[column] = at::cat(rows);
  }
  return whole;
}

}  // namespace acc::detail
