// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/operations.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "acc/base/error.hpp"

namespace acc::detail {
namespace {

at::ScalarType type_of(const std::int64_t* numbers) {
  return static_cast<at::ScalarType>(numbers[0]);
}

c10::IntArrayRef sizes_of(const std::int64_t* numbers) {
  return {numbers + kFormSizes, static_cast<std::size_t>(numbers[1])};
}

}  // namespace

void write_form(const at::Tensor& tensor, std::int64_t* numbers, const std::string& where) {
  if (tensor.dim() > kMaxDimensions) {
    throw Error({.what = fmt::format("a tensor has {} dimensions, and at most {} can be sent", tensor.dim(),
                                     kMaxDimensions),
                 .where = where});
  }
  numbers[0] = static_cast<std::int64_t>(tensor.scalar_type());
  numbers[1] = tensor.dim();
  std::ranges::copy(tensor.sizes(), numbers + kFormSizes);
  std::fill(numbers + kFormSizes + tensor.dim(), numbers + kFormSize, 0);
}

at::Tensor empty_of_form(const std::int64_t* numbers) {
  return at::empty(sizes_of(numbers), at::TensorOptions(type_of(numbers)));
}

std::string form_text(const std::int64_t* numbers) {
  return fmt::format("{} [{}]", c10::toString(type_of(numbers)), fmt::join(sizes_of(numbers), ", "));
}

namespace {

// The forms of all processes' tensors, in rank order.
at::Tensor forms_of(const at::Tensor& tensor, const char* where, ProcessGroup& group) {
  at::Tensor form = at::zeros({kFormSize}, at::kLong);
  write_form(tensor, form.mutable_data_ptr<std::int64_t>(), where);
  return group.all_gather(form);
}

// Throws when the first `numbers` numbers of two forms differ; `must_give` describes them in the Error.
// Without this check Gloo would hang or mix up the bytes.
void require_same(const at::Tensor& forms, std::int64_t numbers, const char* must_give, const char* where) {
  const auto text = [&](std::int64_t rank) { return form_text(forms[rank].const_data_ptr<std::int64_t>()); };
  for (std::int64_t rank = 1; rank < forms.size(0); ++rank) {
    if (forms[rank].slice(0, 0, numbers).equal(forms[0].slice(0, 0, numbers))) continue;
    throw Error({.what = fmt::format("every process must give {}, but rank 0 gives {} and rank {} gives {}",
                                     must_give, text(0), rank, text(rank)),
                 .where = where});
  }
}

void require_same_form(const at::Tensor& tensor, const char* where, ProcessGroup& group) {
  require_same(forms_of(tensor, where, group), kFormSize, "the same shape and type", where);
}

// Throws a clearer error than Gloo's "Invalid scalar type".
void require_reducible(at::ScalarType type, ReduceOp op) {
  constexpr std::array kTypes{at::kBool, at::kChar,     at::kByte,  at::kInt,   at::kLong,
                              at::kHalf, at::kBFloat16, at::kFloat, at::kDouble};
  if (c10::isComplexType(type) && op == ReduceOp::max) {
    throw Error({.what = fmt::format("{} numbers have no maximum", c10::toString(type)),
                 .where = "reduce",
                 .hint = "reduce the absolute values"});
  }
  if (c10::isComplexType(type) || std::ranges::find(kTypes, type) != kTypes.end()) return;
  throw Error({.what = fmt::format("{} cannot be reduced", c10::toString(type)),
               .where = "reduce",
               .hint = fmt::format("convert the tensor first, as in tensor.to(at::{})",
                                   c10::isIntegralType(type, false) ? "kLong" : "kFloat")});
}

// Complex numbers are sent as two real ones. The sum of bools is true if one of them is true.
at::Tensor reduce_all(const at::Tensor& tensor, ReduceOp op, ProcessGroup& group) {
  require_reducible(tensor.scalar_type(), op);
  const bool is_complex = tensor.is_complex();
  at::Tensor result = is_complex ? at::view_as_real(tensor.resolve_conj()) : tensor;
  if (tensor.scalar_type() == at::kBool) {
    if (op == ReduceOp::mean)
      result = result.to(at::kFloat);
    else
      op = ReduceOp::max;
  }
  group.all_reduce(result, op);
  return is_complex ? at::view_as_complex(result) : result;
}

at::Tensor whole_number(std::int64_t number) {
  return at::full({1}, number, at::kLong);
}

at::Tensor bytes_of(std::string_view text, std::int64_t size) {
  at::Tensor bytes = at::zeros({size}, at::kByte);
  std::ranges::copy(text.substr(0, static_cast<std::size_t>(size)),
                    static_cast<char*>(bytes.mutable_data_ptr()));
  return bytes;
}

std::string text_of(const at::Tensor& bytes, std::int64_t size) {
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(size)};
}

}  // namespace

at::Tensor gather_tensor(const at::Tensor& tensor, ProcessGroup* group) {
  const at::Tensor rows = tensor.dim() == 0 ? tensor.detach().reshape({1}) : tensor.detach();
  if (group == nullptr) return rows;
  require_same_form(rows, "gather", *group);
  return group->all_gather(rows).flatten(0, 1);
}

at::Tensor reduce_tensor(const at::Tensor& tensor, ReduceOp op, double scale, ProcessGroup* group) {
  at::Tensor result = tensor.detach();
  if (group == nullptr) {
    // The mean of integers is a float tensor, also on one process.
    result = op == ReduceOp::mean ? result.div(1) : result.clone();
  } else {
    require_same_form(tensor, "reduce", *group);
    result = reduce_all(result, op, *group);
  }
  return scale == 1 ? result : result * scale;
}

at::Tensor broadcast_tensor(const at::Tensor& tensor, int from, ProcessGroup* group) {
  at::Tensor result = tensor.detach().clone();
  if (group == nullptr) return result;
  require_same_form(tensor, "broadcast", *group);
  group->broadcast(result, from);
  return result;
}

at::Tensor pad_tensor(const at::Tensor& tensor, const PadOptions& options, ProcessGroup* group) {
  if (group == nullptr) return tensor.detach();
  const at::Tensor forms = forms_of(tensor, "pad_across_processes", *group);
  require_same(forms, kFormSizes, "the same type and number of dimensions", "pad_across_processes");
  const std::int64_t dim = options.dim < 0 ? options.dim + tensor.dim() : options.dim;
  if (dim < 0 || dim >= tensor.dim()) return tensor.detach();
  const std::int64_t size = forms.select(1, kFormSizes + dim).max().item<std::int64_t>();
  if (size == tensor.size(dim)) return tensor.detach();
  std::vector<std::int64_t> shape = tensor.sizes().vec();
  shape[static_cast<std::size_t>(dim)] = size;
  at::Tensor padded = at::full(shape, options.pad_index, tensor.options().requires_grad(false));
  padded.narrow(dim, options.pad_first ? size - tensor.size(dim) : 0, tensor.size(dim))
      .copy_(tensor.detach());
  return padded;
}

std::vector<std::string> gather_texts(const std::vector<std::string>& texts, ProcessGroup* group) {
  if (group == nullptr) return texts;
  // Three collectives: the number of texts of each process, their lengths, and all bytes.
  std::string own;
  std::vector<std::int64_t> own_lengths;
  for (const std::string& text : texts) {
    own += text;
    own_lengths.push_back(static_cast<std::int64_t>(text.size()));
  }
  const at::Tensor counts = group->all_gather(whole_number(static_cast<std::int64_t>(texts.size())));
  at::Tensor lengths = at::zeros({counts.max().item<std::int64_t>()}, at::kLong);
  std::ranges::copy(own_lengths, lengths.mutable_data_ptr<std::int64_t>());
  lengths = group->all_gather(lengths);
  const std::int64_t largest = lengths.numel() == 0 ? 0 : lengths.sum(1).max().item<std::int64_t>();
  const at::Tensor bytes = group->all_gather(bytes_of(own, largest));
  std::vector<std::string> all;
  for (int rank = 0; rank < group->size(); ++rank) {
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < counts[rank].item<std::int64_t>(); ++i) {
      const std::int64_t length = lengths[rank][i].item<std::int64_t>();
      all.push_back(text_of(bytes[rank].narrow(0, begin, length), length));
      begin += length;
    }
  }
  return all;
}

std::string broadcast_text(std::string_view text, int from, ProcessGroup* group) {
  if (group == nullptr) return std::string(text);
  at::Tensor size = whole_number(static_cast<std::int64_t>(text.size()));
  group->broadcast(size, from);
  at::Tensor bytes = bytes_of(text, size.item<std::int64_t>());
  group->broadcast(bytes, from);
  return text_of(bytes, size.item<std::int64_t>());
}

Part part_of_process(std::size_t length, std::size_t index, std::size_t count, bool apply_padding) {
  const std::size_t each = length / count;
  const std::size_t extra = length % count;
  Part part{.begin = index * each + std::min(index, extra)};
  part.end = part.begin + each + (index < extra ? 1 : 0);
  if (apply_padding) part.padding = each + (extra > 0 ? 1 : 0) - (part.end - part.begin);
  return part;
}

void require_same_length(std::size_t first, std::size_t other) {
  if (first == other) return;
  throw Error(
      {.what = fmt::format("all values must have the same length, but there are {} and {}", first, other),
       .where = "split_between_processes"});
}

at::Tensor take_part(const at::Tensor& tensor, const Part& part) {
  const at::Tensor taken =
      tensor.slice(0, static_cast<std::int64_t>(part.begin), static_cast<std::int64_t>(part.end));
  if (part.padding == 0) return taken;
  std::vector<std::int64_t> repeats(static_cast<std::size_t>(tensor.dim()), 1);
  repeats[0] = static_cast<std::int64_t>(part.padding);
  return at::cat({taken, tensor.slice(0, -1).repeat(repeats)});
}

}  // namespace acc::detail
