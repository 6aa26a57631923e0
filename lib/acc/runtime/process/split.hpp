// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace acc {

/// The part of a sequence that one process gets.
struct Part {
  std::size_t begin = 0;
  std::size_t end = 0;
  /// How often the sequence's last element follows.
  std::size_t padding = 0;

  bool operator==(const Part&) const = default;
};

/// Cuts `length` elements for `count` processes, as accelerate's split_between_processes: the first
/// `length % count` processes get one more; with padding all get as many as the first. Pure.
Part split(std::size_t length, std::size_t index, std::size_t count, bool apply_padding);

/// Throws Error{usage} when the values of a map or tuple differ in length.
void require_same_length(std::size_t first, std::size_t other);

/// Tuples, pairs and arrays.
template <class Values>
concept TupleLike = requires {
  std::tuple_size<Values>::value;
};

/// How many elements there are to split: a tensor's rows; in a map or tuple all values have as many.
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
Values take(Values values, const Part& part);
at::Tensor take(const at::Tensor& tensor, const Part& part);
template <class T>
std::vector<T> take(const std::vector<T>& list, const Part& part) {
  const auto at = [&](std::size_t place) { return list.begin() + static_cast<std::ptrdiff_t>(place); };
  std::vector<T> taken(at(part.begin), at(part.end));
  if (part.padding > 0) taken.insert(taken.end(), part.padding, list.back());
  return taken;
}
template <class Key, class Value>
std::map<Key, Value> take(std::map<Key, Value> values, const Part& part) {
  for (auto& [key, value] : values) value = take(value, part);
  return values;
}
template <TupleLike Values>
Values take(Values values, const Part& part) {
  std::apply([&](auto&... value) { ((value = take(value, part)), ...); }, values);
  return values;
}

}  // namespace acc
