// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "acc/base/byte_reader.hpp"
#include "acc/runtime/comm/object_text.hpp"
#include "acc/runtime/tensors/nested_tensors.hpp"

namespace acc {

namespace detail {

/// Where errors of batches that are sent were met.
inline constexpr const char* kDispatchBatches = "dispatch_batches";

/// A batch in the form in which it is sliced and sent.
struct BatchParts {
  /// Each tensor has a row for each sample.
  std::vector<at::Tensor> tensors = {};
  /// Each list has an element for each sample: the serialized values that are not tensors.
  std::vector<std::vector<std::string>> lists = {};
  /// The serialized values that do not belong to one sample: keys, numbers of tensors, single values.
  std::string common = {};
};

/// Serializes all parts to one string, and back. Throws Error{system} for a text that is not of such parts.
std::string to_text(const BatchParts& parts);
BatchParts parts_of_text(std::string_view text);

/// The number of rows. Throws Error{usage} when nothing has rows, or their numbers differ.
std::size_t count_rows(const BatchParts& parts);

/// Rows [begin, begin + length), or fewer if the batch ends before.
BatchParts slice_rows(const BatchParts& parts, std::size_t begin, std::size_t length);

/// The rows of all batches. Throws Error{usage} when the batches differ in anything but their rows.
BatchParts concatenate(const std::vector<BatchParts>& batches);

/// Throws Error{usage} unless a default-constructed batch has as many tensors as this one.
void require_tensor_count(std::size_t expected, std::size_t actual);

namespace batch_parts {

using nested::Kind;

template <class Value>
using Key = std::remove_cvref_t<decltype(std::declval<Value&>().begin()->key())>;
template <class Value>
using Item = std::remove_cvref_t<decltype(std::declval<Value&>().begin()->value())>;

template <class Value>
constexpr bool is_sendable() {
  constexpr Kind kKind = nested::kKindOf<Value>;
  if constexpr (!std::default_initializable<Value>) {
    return false;
  } else if constexpr (kKind == Kind::tensor || kKind == Kind::custom) {
    return true;
  } else if constexpr (kKind == Kind::tuple) {
    return []<std::size_t... I>(std::index_sequence<I...> /*places*/) {
      return (is_sendable<std::tuple_element_t<I, Value>>() && ...);
    }(std::make_index_sequence<std::tuple_size_v<Value>>());
  } else if constexpr (kKind == Kind::optional) {
    return is_sendable<typename Value::value_type>();
  } else if constexpr (kKind == Kind::map) {
    return HasText<typename Value::key_type> && is_sendable<typename Value::mapped_type>();
  } else if constexpr (kKind == Kind::dictionary) {
    return HasText<Key<Value>> && is_sendable<Item<Value>>();
  } else if constexpr (kKind == Kind::list) {
    using Element = std::ranges::range_value_t<Value>;
    return requires(Value& value, Element element) { value.push_back(element); } && is_sendable<Element>();
  } else if constexpr (kKind == Kind::example) {
    if constexpr (requires(Value& value) { value.target; }) {
      return is_sendable<decltype(Value::data)>() && is_sendable<decltype(Value::target)>();
    } else {
      return is_sendable<decltype(Value::data)>();
    }
  } else {
    return HasText<Value>;
  }
}

class Writer {
 public:
  template <class Value>
  void put(Value& value) {
    constexpr Kind kKind = nested::kKindOf<Value>;
    if constexpr (kKind == Kind::tensor) {
      parts_.tensors.push_back(value);
    } else if constexpr (kKind == Kind::custom) {
      put_custom(value);
    } else if constexpr (kKind == Kind::tuple) {
      std::apply([this](auto&... part) { (put(part), ...); }, value);
    } else if constexpr (kKind == Kind::optional) {
      append_number<std::uint64_t>(parts_.common, value.has_value() ? 1 : 0);
      if (value.has_value()) put(*value);
    } else if constexpr (kKind == Kind::map) {
      append_number<std::uint64_t>(parts_.common, value.size());
      for (auto& [key, part] : value) {
        put_text(key);
        put(part);
      }
    } else if constexpr (kKind == Kind::dictionary) {
      append_number<std::uint64_t>(parts_.common, value.size());
      for (auto& item : value) {
        put_text(item.key());
        put(item.value());
      }
    } else if constexpr (kKind == Kind::list) {
      put_list(value);
    } else if constexpr (kKind == Kind::example) {
      put(value.data);
      if constexpr (requires { value.target; }) put(value.target);
    } else {
      put_text(value);
    }
  }

  BatchParts take() { return std::move(parts_); }

 private:
  template <class Value>
  void put_text(const Value& value) {
    append_text(parts_.common, ObjectText<Value>::write(value));
  }
  template <class Value>
  void put_custom(Value& value) {
    std::size_t count = 0;
    Value empty{};
    for_each_tensor_place(empty, [&](at::Tensor& /*place*/) { ++count; });
    const std::size_t before = parts_.tensors.size();
    for_each_tensor_place(value, [this](at::Tensor& tensor) { parts_.tensors.push_back(tensor); });
    require_tensor_count(count, parts_.tensors.size() - before);
  }
  template <class List>
  void put_list(List& list) {
    using Element = std::ranges::range_value_t<List>;
    if constexpr (std::is_same_v<Element, at::Tensor>) {
      append_number(parts_.common, static_cast<std::uint64_t>(std::ranges::distance(list)));
      for (auto& tensor : list) put(tensor);
    } else {
      std::vector<std::string> texts;
      for (auto&& part : list) {
        Element element = part;
        Writer writer;
        writer.put(element);
        texts.push_back(to_text(writer.take()));
      }
      parts_.lists.push_back(std::move(texts));
    }
  }

  BatchParts parts_ = {};
};

class Reader {
 public:
  explicit Reader(const BatchParts& parts) : parts_(parts), common_(parts.common, "dispatch_batches") {}

  // `value` must be default-constructed.
  template <class Value>
  void get(Value& value) {
    constexpr Kind kKind = nested::kKindOf<Value>;
    if constexpr (kKind == Kind::tensor) {
      value = next_tensor();
    } else if constexpr (kKind == Kind::custom) {
      for_each_tensor_place(value, [this](at::Tensor& tensor) { tensor = next_tensor(); });
    } else if constexpr (kKind == Kind::tuple) {
      std::apply([this](auto&... part) { (get(part), ...); }, value);
    } else if constexpr (kKind == Kind::optional) {
      if (common_.number<std::uint64_t>() != 0) get(value.emplace());
    } else if constexpr (kKind == Kind::map) {
      for (auto count = common_.number<std::uint64_t>(); count > 0; --count) {
        auto key = next_value<typename Value::key_type>();
        typename Value::mapped_type part{};
        get(part);
        value.emplace(std::move(key), std::move(part));
      }
    } else if constexpr (kKind == Kind::dictionary) {
      for (auto count = common_.number<std::uint64_t>(); count > 0; --count) {
        auto key = next_value<Key<Value>>();
        Item<Value> part{};
        get(part);
        value.insert(std::move(key), std::move(part));
      }
    } else if constexpr (kKind == Kind::list) {
      get_list(value);
    } else if constexpr (kKind == Kind::example) {
      get(value.data);
      if constexpr (requires { value.target; }) get(value.target);
    } else {
      value = next_value<Value>();
    }
  }

 private:
  const at::Tensor& next_tensor() {
    if (next_tensor_ == parts_.tensors.size()) common_.fail();
    return parts_.tensors[next_tensor_++];
  }
  template <class Value>
  Value next_value() {
    return ObjectText<Value>::read(common_.text());
  }
  template <class List>
  void get_list(List& list) {
    using Element = std::ranges::range_value_t<List>;
    if constexpr (std::is_same_v<Element, at::Tensor>) {
      for (auto count = common_.number<std::uint64_t>(); count > 0; --count) list.push_back(next_tensor());
    } else {
      if (next_list_ == parts_.lists.size()) common_.fail();
      for (const std::string& text : parts_.lists[next_list_++]) {
        const BatchParts parts = parts_of_text(text);
        Element element{};
        Reader(parts).get(element);
        list.push_back(std::move(element));
      }
    }
  }

  const BatchParts& parts_;
  ByteReader common_;
  std::size_t next_tensor_ = 0;
  std::size_t next_list_ = 0;
};

}  // namespace batch_parts

}  // namespace detail

/// Batches that can be sent to other processes: structures (see nested_tensors.hpp) of tensors and of values
/// that ObjectText can serialize. A vector of tensors is sent as if it were a tuple; other vectors must have
/// an element for each row. Of a type with its own for_each_tensor only the tensors are sent.
template <class Batch>
concept SendableBatch = detail::batch_parts::is_sendable<Batch>();

namespace detail {

template <SendableBatch Batch>
BatchParts parts_of(Batch& batch) {
  batch_parts::Writer writer;
  writer.put(batch);
  return writer.take();
}

template <SendableBatch Batch>
Batch batch_of(const BatchParts& parts) {
  Batch batch{};
  batch_parts::Reader(parts).get(batch);
  return batch;
}

}  // namespace detail

}  // namespace acc
