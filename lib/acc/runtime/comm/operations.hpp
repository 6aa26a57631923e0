// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "acc/runtime/comm/process_group.hpp"

namespace acc {

/// The arguments of pad_across_processes.
struct PadOptions {
  std::int64_t dim = 0;    ///< The dimension that is padded.
  double pad_index = 0;    ///< The value of the new elements.
  bool pad_first = false;  ///< Pads at the start.
};

namespace detail {

/// A hash of a text that is the same on all machines, which std::hash need not be: FNV-1a.
std::uint64_t fingerprint(std::string_view text);

// The collective operations of PartialState for one tensor of a structure. `group` is null if there is one
// process. All throw Error{usage} on every rank when the processes do not call the same operation with the
// same arguments, `structure` (see structure_text) among them: otherwise they would get each other's values.
// So they do when one process gives what cannot be sent: the others would wait for it.

at::Tensor gather_tensor(const at::Tensor& tensor, ProcessGroup* group,
                         const std::string& structure = "tensor");
at::Tensor reduce_tensor(const at::Tensor& tensor, ReduceOp op, double scale, ProcessGroup* group,
                         const std::string& structure = "tensor");
at::Tensor broadcast_tensor(const at::Tensor& tensor, int from, ProcessGroup* group,
                            const std::string& structure = "tensor");
at::Tensor pad_tensor(const at::Tensor& tensor, const PadOptions& options, ProcessGroup* group,
                      const std::string& structure = "tensor");

/// The same check for an operation on a structure without tensors, which calls none of the above.
void require_no_tensors(const std::string& structure, ProcessGroup* group);

/// Gathers the texts of all processes in rank order. Their number and lengths may differ between processes.
/// `failure` is why this process has none: it throws that, and the others an Error{system} that names it.
std::vector<std::string> gather_texts(const std::vector<std::string>& texts, ProcessGroup* group,
                                      const std::exception_ptr& failure = nullptr);
/// The text of rank `from`, whose `failure` is treated in the same way.
std::string broadcast_text(std::string_view text, int from, ProcessGroup* group,
                           const std::exception_ptr& failure = nullptr);

/// What `function` throws; null if it returns.
template <class Function>
std::exception_ptr failure_of(const Function& function) {
  try {
    function();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

/// The part of a sequence for one process.
struct Part {
  std::size_t begin = 0;
  std::size_t end = 0;
  /// How many times the last element of the sequence is appended to the part.
  std::size_t padding = 0;

  bool operator==(const Part&) const = default;
};

/// The part of process `index` when `length` elements are divided among `count` processes, as by accelerate's
/// split_between_processes: the first `length % count` processes get one more; with padding all get as many
/// as the first.
Part part_of_process(std::size_t length, std::size_t index, std::size_t count, bool apply_padding);

/// Throws Error{usage} when the values of a map or tuple differ in length.
void require_same_length(std::size_t first, std::size_t other);

/// Tuples, pairs and arrays.
template <class Values>
concept TupleLike = requires { std::tuple_size<Values>::value; };

/// The number of elements to split: the rows of a tensor, or the common length of all values in a map or
/// tuple.
template <TupleLike Values>
std::size_t split_length(const Values& values);
inline std::size_t split_length(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.size(0));
}
template <class T>
std::size_t split_length(const std::vector<T>& list) {
  return list.size();
}
template <class Key, class Value>
std::size_t split_length(const std::map<Key, Value>& values) {
  if (values.empty()) return 0;
  const std::size_t length = split_length(values.begin()->second);
  for (const auto& [key, value] : values) require_same_length(length, split_length(value));
  return length;
}
template <TupleLike Values>
std::size_t split_length(const Values& values) {
  const std::size_t length = split_length(std::get<0>(values));
  std::apply([&](const auto&... value) { (require_same_length(length, split_length(value)), ...); }, values);
  return length;
}

template <TupleLike Values>
Values take_part(Values values, const Part& part);
at::Tensor take_part(const at::Tensor& tensor, const Part& part);
template <class T>
std::vector<T> take_part(const std::vector<T>& list, const Part& part) {
  const auto iterator_at = [&](std::size_t index) {
    return list.begin() + static_cast<std::ptrdiff_t>(index);
  };
  std::vector<T> slice(iterator_at(part.begin), iterator_at(part.end));
  if (part.padding > 0) slice.insert(slice.end(), part.padding, list.back());
  return slice;
}
template <class Key, class Value>
std::map<Key, Value> take_part(std::map<Key, Value> values, const Part& part) {
  for (auto& [key, value] : values) value = take_part(value, part);
  return values;
}
template <TupleLike Values>
Values take_part(Values values, const Part& part) {
  std::apply([&](auto&... value) { ((value = take_part(value, part)), ...); }, values);
  return values;
}

}  // namespace detail

}  // namespace acc
