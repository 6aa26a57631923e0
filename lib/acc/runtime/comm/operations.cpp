// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/operations.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/tensor_form.hpp"

namespace acc::detail {
std::uint64_t fingerprint(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char character : text) hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3U;
  return hash;
}

namespace {

// An operation as all processes must call it.
struct Call {
  enum class Operation : std::int64_t {
    gather,
    reduce,
    broadcast,
    pad,
    none,
    gather_object,
    broadcast_object
  };

  Operation operation = Operation::none;
  std::int64_t argument = 0;  // ReduceOp, the root, or the dimension
  std::string structure = {};
};

constexpr std::array<const char*, 7> kOperationNames = {
    "gather",        "reduce",          "broadcast", "pad_across_processes", "an operation without tensors",
    "gather_object", "broadcast_object"};

const char* name_of(const Call& call) {
  return kOperationNames.at(static_cast<std::size_t>(call.operation));
}

// What processes exchange before the data: the operation, its argument and a hash of the structure, then the
// form of the tensor, or the number of texts or bytes of objects.
constexpr std::int64_t kCallSize = 3;
constexpr std::int64_t kNumbers = kCallSize + kFormSize;
// Instead of the form or the number, where there is nothing to send. For a tensor the reason follows.
constexpr std::int64_t kUnsendable = -1;

// "reduce (max)", "broadcast (from rank 1)"
std::string call_text(const std::int64_t* numbers) {
  constexpr std::array<const char*, 4> kReductions = {"sum", "mean", "max", "sum"};
  const auto operation = static_cast<Call::Operation>(numbers[0]);
  if (numbers[0] < 0 || numbers[0] >= static_cast<std::int64_t>(kOperationNames.size()))
    return "what this version does not have";
  std::string name = kOperationNames.at(static_cast<std::size_t>(numbers[0]));
  switch (operation) {
    case Call::Operation::reduce:
      if (numbers[1] < 0 || numbers[1] >= static_cast<std::int64_t>(kReductions.size())) return name;
      return fmt::format("{} ({})", name, kReductions.at(static_cast<std::size_t>(numbers[1])));
    case Call::Operation::broadcast:
    case Call::Operation::broadcast_object:
      return fmt::format("{} (from rank {})", name, numbers[1]);
    case Call::Operation::pad:
      return fmt::format("{} (dimension {})", name, numbers[1]);
    default:
      return name;
  }
}

std::string shortened(const std::string& text) {
  constexpr std::size_t kMaxShown = 200;
  return text.size() <= kMaxShown ? text : text.substr(0, kMaxShown) + "...";
}

// Throws when the first `count` numbers of two processes differ, from `begin` on.
template <class Differ>
void require_same(const at::Tensor& all, std::int64_t begin, std::int64_t count, const Differ& error_of) {
  for (std::int64_t rank = 1; rank < all.size(0); ++rank) {
    if (!all[rank].narrow(0, begin, count).equal(all[0].narrow(0, begin, count))) throw error_of(rank);
  }
}

const std::int64_t* numbers_of(const at::Tensor& all, std::int64_t rank) {
  return all.const_data_ptr<std::int64_t>() + rank * kNumbers;
}

// Exchanges the numbers of all processes, whose form is written already, and returns them in rank order.
// Throws when the calls differ.
at::Tensor exchange(const Call& call, at::Tensor numbers, ProcessGroup& group) {
  auto* const row = numbers.mutable_data_ptr<std::int64_t>();
  row[0] = static_cast<std::int64_t>(call.operation);
  row[1] = call.argument;
  row[2] = static_cast<std::int64_t>(fingerprint(call.structure));
  const at::Tensor gathered = group.all_gather(numbers);
  const std::string where = name_of(call);
  require_same(gathered, 0, 2, [&](std::int64_t rank) {
    return Error(
        {.what = fmt::format("the processes do not make the same calls: rank 0 calls {}, rank {} calls {}",
                             call_text(numbers_of(gathered, 0)), rank, call_text(numbers_of(gathered, rank))),
         .where = where,
         .hint = "every process must make the same calls in the same order"});
  });
  if (gathered.select(1, 2).eq(row[2]).all().item<bool>()) return gathered;
  // Exchanges the structures only now that a difference is known.
  const at::Tensor lengths =
      group.all_gather(at::full({1}, static_cast<std::int64_t>(call.structure.size()), at::kLong));
  const auto longest = lengths.max().item<std::int64_t>();
  at::Tensor text = at::zeros({longest}, at::kByte);
  std::ranges::copy(call.structure, static_cast<char*>(text.mutable_data_ptr()));
  const at::Tensor texts = group.all_gather(text);
  const auto structure = [&](std::int64_t rank) {
    return shortened({static_cast<const char*>(texts[rank].const_data_ptr()),
                      static_cast<std::size_t>(lengths[rank].item<std::int64_t>())});
  };
  require_same(gathered, 2, 1, [&](std::int64_t rank) {
    return Error(
        {.what = fmt::format("every process must give the same structure, but rank 0 gives {} and rank "
                             "{} gives {}",
                             structure(0), rank, structure(rank)),
         .where = where});
  });
  return gathered;
}

// The same for an operation on a tensor. Throws also when the first `count` numbers of the forms differ;
// `must_give` describes them in the Error. Without this check Gloo would hang or mix up the bytes.
at::Tensor exchange_forms(const Call& call, const at::Tensor& tensor, std::int64_t count,
                          const char* must_give, ProcessGroup& group) {
  at::Tensor numbers = at::zeros({kNumbers}, at::kLong);
  auto* const row = numbers.mutable_data_ptr<std::int64_t>() + kCallSize;
  if (const auto obstacle = obstacle_of(tensor)) {
    row[0] = kUnsendable;
    row[1] = static_cast<std::int64_t>(*obstacle);
  } else {
    write_form(tensor, row, name_of(call));
  }
  const at::Tensor gathered = exchange(call, numbers, group);
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::int64_t* const form = numbers_of(gathered, rank) + kCallSize;
    if (form[0] != kUnsendable) {
      require_form(form, name_of(call));
      continue;
    }
    throw Error({.what = fmt::format("rank {} gives {}, which cannot be sent", rank,
                                     obstacle_text(static_cast<Obstacle>(form[1]))),
                 .where = name_of(call)});
  }
  const auto form = [&](std::int64_t rank) { return form_text(numbers_of(gathered, rank) + kCallSize); };
  require_same(gathered, kCallSize, count, [&](std::int64_t rank) {
    return Error({.what = fmt::format("every process must give {}, but rank 0 gives {} and rank {} gives {}",
                                      must_give, form(0), rank, form(rank)),
                  .where = name_of(call)});
  });
  return gathered;
}

void require_same_form(const Call& call, const at::Tensor& tensor, ProcessGroup& group) {
  exchange_forms(call, tensor, kFormSize, "the same shape and type", group);
}

// The same for objects, of which each process gives a number, of texts or bytes. Returns all numbers. Throws
// `failure` here and an Error on the others when there is one.
at::Tensor exchange_counts(const Call& call, std::size_t count, ProcessGroup& group,
                           const std::exception_ptr& failure) {
  at::Tensor numbers = at::zeros({kNumbers}, at::kLong);
  numbers[kCallSize] = failure ? kUnsendable : static_cast<std::int64_t>(count);
  const at::Tensor counts = exchange(call, numbers, group).select(1, kCallSize);
  if (failure) std::rethrow_exception(failure);
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto given = counts[rank].item<std::int64_t>();
    if (given >= 0) continue;
    if (given != kUnsendable) refuse_numbers(name_of(call));
    throw Error(
        {.kind = ErrorKind::system,
         .what = fmt::format("rank {} could not send its object; its own error names the cause", rank),
         .where = name_of(call)});
  }
  return counts;
}

void require_rank(int from, const ProcessGroup& group, const char* where) {
  if (from >= 0 && from < group.size()) return;
  throw Error({.what = fmt::format("there is no rank {}: the ranks are 0 to {}", from, group.size() - 1),
               .where = where});
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
  at::Tensor result = is_complex ? at::view_as_real(tensor.resolve_conj().resolve_neg()) : tensor;
  if (tensor.scalar_type() == at::kBool && op != ReduceOp::mean) op = ReduceOp::max;
  group.all_reduce(result, op);
  return is_complex ? at::view_as_complex(result) : result;
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

at::Tensor gather_tensor(const at::Tensor& tensor, ProcessGroup* group, const std::string& structure) {
  const bool is_number = tensor.defined() && tensor.dim() == 0;
  const at::Tensor rows = is_number ? tensor.reshape({1}) : tensor;
  if (group == nullptr) return rows.detach();
  require_same_form({.operation = Call::Operation::gather, .structure = structure}, rows, *group);
  return group->all_gather(rows.detach()).flatten(0, 1);
}

at::Tensor reduce_tensor(const at::Tensor& tensor, ReduceOp op, double scale, ProcessGroup* group,
                         const std::string& structure) {
  if (op == ReduceOp::none) op = ReduceOp::sum;
  at::Tensor result;
  if (group == nullptr) {
    // The mean of integers is a float tensor, also on one process.
    result = op == ReduceOp::mean ? tensor.detach().div(1) : tensor.detach().clone();
  } else {
    require_same_form({.operation = Call::Operation::reduce,
                       .argument = static_cast<std::int64_t>(op),
                       .structure = structure},
                      tensor, *group);
    result = reduce_all(tensor.detach(), op, *group);
  }
  return scale == 1 ? result : result * scale;
}

at::Tensor broadcast_tensor(const at::Tensor& tensor, int from, ProcessGroup* group,
                            const std::string& structure) {
  if (group == nullptr) return tensor.detach().clone();
  require_same_form({.operation = Call::Operation::broadcast, .argument = from, .structure = structure},
                    tensor, *group);
  require_rank(from, *group, "broadcast");
  at::Tensor result = tensor.detach().clone();
  group->broadcast(result, from);
  return result;
}

at::Tensor pad_tensor(const at::Tensor& tensor, const PadOptions& options, ProcessGroup* group,
                      const std::string& structure) {
  if (group == nullptr) return tensor.detach();
  const at::Tensor gathered =
      exchange_forms({.operation = Call::Operation::pad, .argument = options.dim, .structure = structure},
                     tensor, kFormSizes, "the same type and number of dimensions", *group);
  const std::int64_t dim = options.dim < 0 ? options.dim + tensor.dim() : options.dim;
  if (dim < 0 || dim >= tensor.dim()) return tensor.detach();
  const auto size = gathered.select(1, kCallSize + kFormSizes + dim).max().item<std::int64_t>();
  if (size == tensor.size(dim)) return tensor.detach();
  std::vector<std::int64_t> shape = tensor.sizes().vec();
  shape[static_cast<std::size_t>(dim)] = size;
  at::Tensor padded = at::full(shape, options.pad_index, tensor.options().requires_grad(false));
  padded.narrow(dim, options.pad_first ? size - tensor.size(dim) : 0, tensor.size(dim))
      .copy_(tensor.detach());
  return padded;
}

void require_no_tensors(const std::string& structure, ProcessGroup* group) {
  if (group != nullptr) exchange({.structure = structure}, at::zeros({kNumbers}, at::kLong), *group);
}

std::vector<std::string> gather_texts(const std::vector<std::string>& texts, ProcessGroup* group,
                                      const std::exception_ptr& failure) {
  if (group == nullptr && failure) std::rethrow_exception(failure);
  if (group == nullptr) return texts;
  // Three collectives: the number of texts of each process, their lengths, and all bytes.
  std::string own_bytes;
  std::vector<std::int64_t> own_lengths;
  for (const std::string& text : texts) {
    own_bytes += text;
    own_lengths.push_back(static_cast<std::int64_t>(text.size()));
  }
  const at::Tensor counts =
      exchange_counts({.operation = Call::Operation::gather_object}, texts.size(), *group, failure);
  at::Tensor lengths = at::zeros({counts.max().item<std::int64_t>()}, at::kLong);
  std::ranges::copy(own_lengths, lengths.mutable_data_ptr<std::int64_t>());
  lengths = group->all_gather(lengths);
  const auto largest = lengths.numel() == 0 ? 0 : lengths.sum(1).max().item<std::int64_t>();
  const at::Tensor bytes = group->all_gather(bytes_of(own_bytes, largest));
  std::vector<std::string> result;
  for (int rank = 0; rank < group->size(); ++rank) {
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < counts[rank].item<std::int64_t>(); ++i) {
      const auto length = lengths[rank][i].item<std::int64_t>();
      result.push_back(text_of(bytes[rank].narrow(0, begin, length), length));
      begin += length;
    }
  }
  return result;
}

std::string broadcast_text(std::string_view text, int from, ProcessGroup* group,
                           const std::exception_ptr& failure) {
  if (group == nullptr && failure) std::rethrow_exception(failure);
  if (group == nullptr) return std::string(text);
  const at::Tensor sizes = exchange_counts({.operation = Call::Operation::broadcast_object, .argument = from},
                                           text.size(), *group, failure);
  require_rank(from, *group, "broadcast_object");
  const auto size = sizes[from].item<std::int64_t>();
  at::Tensor bytes = bytes_of(text, size);
  group->broadcast(bytes, from);
  return text_of(bytes, size);
}

Part part_of_process(std::size_t length, std::size_t index, std::size_t count, bool apply_padding) {
  const std::size_t min_length = length / count;
  const std::size_t extra = length % count;
  Part part{.begin = index * min_length + std::min(index, extra)};
  part.end = part.begin + min_length + (index < extra ? 1 : 0);
  if (apply_padding) part.padding = min_length + (extra > 0 ? 1 : 0) - (part.end - part.begin);
  return part;
}

void require_same_length(std::size_t first, std::size_t other) {
  if (first == other) return;
  throw Error(
      {.what = fmt::format("all values must have the same length, but there are {} and {}", first, other),
       .where = "split_between_processes"});
}

at::Tensor take_part(const at::Tensor& tensor, const Part& part) {
  at::Tensor slice =
      tensor.slice(0, static_cast<std::int64_t>(part.begin), static_cast<std::int64_t>(part.end));
  if (part.padding == 0) return slice;
  std::vector<std::int64_t> repeats(static_cast<std::size_t>(tensor.dim()), 1);
  repeats[0] = static_cast<std::int64_t>(part.padding);
  return at::cat({slice, tensor.slice(0, -1).repeat(repeats)});
}

}  // namespace acc::detail
