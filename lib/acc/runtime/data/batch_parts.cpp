// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/batch_parts.hpp"

#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include <algorithm>

#include "acc/base/byte_reader.hpp"
#include "acc/base/error.hpp"
#include "acc/runtime/comm/tensor_form.hpp"
#include "acc/runtime/tensors/tensor_text.hpp"

namespace acc::detail {
namespace {

std::string text_of(const at::Tensor& tensor) {
  if (tensor.defined()) require_sendable(tensor, kDispatchBatches);
  return text_of_tensor(tensor);
}

bool fit(const BatchParts& one, const BatchParts& other) {
  return one.common == other.common && one.lists.size() == other.lists.size() &&
         std::ranges::equal(one.tensors, other.tensors, [](const at::Tensor& a, const at::Tensor& b) {
           return a.sizes().slice(1) == b.sizes().slice(1);
         });
}

}  // namespace

void require_tensor_count(std::size_t expected, std::size_t actual) {
  if (expected == actual) return;
  throw Error(
      {.what = fmt::format("a batch's type with its own for_each_tensor holds {} tensors, but {} when it "
                           "is default-constructed",
                           actual, expected),
       .where = kDispatchBatches,
       .hint = "let batches be tuples, vectors or maps, or set dispatch_batches to false"});
}

std::string to_text(const BatchParts& parts) {
  std::string text;
  append_text(text, parts.common);
  append_number<std::uint64_t>(text, parts.lists.size());
  for (const auto& list : parts.lists) {
    append_number<std::uint64_t>(text, list.size());
    for (const std::string& element : list) append_text(text, element);
  }
  append_number<std::uint64_t>(text, parts.tensors.size());
  for (const at::Tensor& tensor : parts.tensors) append_text(text, text_of(tensor));
  return text;
}

BatchParts parts_of_text(std::string_view text) {
  constexpr std::size_t kLength = sizeof(std::uint64_t);
  ByteReader reader(text, kDispatchBatches);
  BatchParts parts{.common = std::string(reader.text())};
  parts.lists.resize(reader.count(kLength));
  for (auto& list : parts.lists) {
    list.resize(reader.count(kLength));
    for (std::string& element : list) element = reader.text();
  }
  parts.tensors.resize(reader.count(kLength));
  for (at::Tensor& tensor : parts.tensors) tensor = tensor_of_text(reader.text(), kDispatchBatches);
  return parts;
}

std::size_t count_rows(const BatchParts& parts) {
  std::vector<std::size_t> rows;
  for (const at::Tensor& tensor : parts.tensors) {
    if (!tensor.defined() || tensor.dim() == 0)
      throw Error({.what = "a tensor of a batch is undefined or 0-dimensional: it has no rows",
                   .where = kDispatchBatches});
    rows.push_back(static_cast<std::size_t>(tensor.size(0)));
  }
  for (const auto& list : parts.lists) rows.push_back(list.size());
  if (rows.empty())
    throw Error({.what = "a batch needs a tensor or a vector, to have rows", .where = kDispatchBatches});
  if (!std::ranges::all_of(rows, [&](std::size_t one) { return one == rows.front(); })) {
    throw Error({.what = "every tensor and vector of a batch needs the same number of rows",
                 .where = kDispatchBatches});
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
                   .where = kDispatchBatches,
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
