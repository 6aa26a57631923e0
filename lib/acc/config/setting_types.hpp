// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "acc/config/value.hpp"

namespace acc::launcher {

/// accelerate's kinds of training.
enum class DistributedType {
  no,
  multi_cpu,
  multi_gpu,
  multi_xpu,
  multi_hpu,
  multi_npu,
  multi_mlu,
  multi_sdaa,
  multi_musa,
  multi_neuron,
  deepspeed,
  fsdp,
  megatron_lm,
  xla,
};

/// Whether several processes train on devices of one kind, without a library that shards the model.
constexpr bool is_multi(DistributedType type) {
  return type >= DistributedType::multi_cpu && type <= DistributedType::multi_neuron;
}

/// Where a job runs.
enum class ComputeEnvironment { local_machine, amazon_sagemaker };

/// What to do when the job hangs.
enum class OnHang { report, restart, kill };

/// What shows that a rank does not hang: output or use of the CPU, or output alone.
enum class ActivityKind { activity, output, progress };

/// How torchrun's `--numa-binding` divides the CPUs.
enum class NumaBinding {
  node,          ///< all CPUs of the node
  socket,        ///< all CPUs of the node's socket
  exclusive,     ///< the node's physical cores, divided among those who share it
  core_complex,  ///< one of the node's groups that share a last-level cache
};

/// The formats of `--dry_run`.
enum class DryRun { text, json };

/// Words that are separated by blanks, as a range.
class Words {
 public:
  constexpr Words() = default;
  constexpr Words(const char* text) : text_(text) {}

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = std::string_view;
    using pointer = void;
    using reference = std::string_view;

    constexpr Iterator() = default;
    constexpr explicit Iterator(std::string_view rest) : rest_(rest) {}
    constexpr std::string_view operator*() const { return rest_.substr(0, rest_.find(' ')); }
    constexpr Iterator& operator++() {
      rest_.remove_prefix(std::min(rest_.size(), (**this).size() + 1));
      return *this;
    }
    constexpr Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    /// Of two positions in the same list.
    constexpr bool operator==(const Iterator& other) const { return rest_.size() == other.rest_.size(); }

   private:
    std::string_view rest_ = {};
  };

  constexpr Iterator begin() const { return Iterator(text_); }
  constexpr Iterator end() const { return {}; }
  constexpr bool empty() const { return text_.empty(); }
  constexpr std::size_t size() const {
    return static_cast<std::size_t>(std::ranges::distance(begin(), end()));
  }
  constexpr std::string_view back() const { return text_.substr(text_.rfind(' ') + 1); }
  constexpr std::string_view operator[](std::size_t index) const {
    return *std::ranges::next(begin(), static_cast<std::ptrdiff_t>(index));
  }

 private:
  std::string_view text_ = {};
};

/// The words of an enumeration on command lines, in files and in messages, in the order of its values.
template <class Enum>
inline constexpr Words kEnumWords = {};
template <>
inline constexpr Words kEnumWords<DistributedType> =
    "NO MULTI_CPU MULTI_GPU MULTI_XPU MULTI_HPU MULTI_NPU MULTI_MLU MULTI_SDAA MULTI_MUSA MULTI_NEURON "
    "DEEPSPEED FSDP MEGATRON_LM XLA";
template <>
inline constexpr Words kEnumWords<ComputeEnvironment> = "LOCAL_MACHINE AMAZON_SAGEMAKER";
template <>
inline constexpr Words kEnumWords<OnHang> = "report restart kill";
template <>
inline constexpr Words kEnumWords<ActivityKind> = "activity output progress";
template <>
inline constexpr Words kEnumWords<NumaBinding> = "node socket exclusive core-complex";
template <>
inline constexpr Words kEnumWords<DryRun> = "text json";

template <class Enum>
constexpr std::string_view word_of(Enum value) {
  return kEnumWords<Enum>[static_cast<std::size_t>(value)];
}

/// The value with this word; nullopt if there is none.
template <class Enum>
constexpr std::optional<Enum> value_of_word(std::string_view word) {
  const Words& words = kEnumWords<Enum>;
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) return std::nullopt;
  return static_cast<Enum>(std::ranges::distance(words.begin(), found));
}

/// The types of settings are bool, std::int64_t, double, std::string (empty: not given), enumerations with
/// kEnumWords, std::vector<std::string>, those below, and std::optional of what need not be given.
using IntegerOrText = std::variant<std::int64_t, std::string>;
using NumberOrText = std::variant<double, std::string>;
using TruthOrText = std::variant<bool, std::string>;
using Truths = std::array<bool, 3>;
/// The keys of a section of config files.
struct Section {
  Value keys = Value::object();
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// The value of a setting of type T, which may be null where T can be empty.
template <class T>
T value_as(const Value& value) {
  if constexpr (kIsOptional<T>) {
    return value.is_null() ? T() : T(value_as<typename T::value_type>(value));
  } else if constexpr (std::is_enum_v<T>) {
    return value_of_word<T>(value.get_ref<const std::string&>()).value();
  } else if constexpr (std::is_same_v<T, IntegerOrText> || std::is_same_v<T, TruthOrText> ||
                       std::is_same_v<T, NumberOrText>) {
    if (value.is_string()) return value.get<std::string>();
    return value.get<std::variant_alternative_t<0, T>>();
  } else if constexpr (std::is_same_v<T, Section>) {
    return {value};
  } else {
    const bool empty = value.is_null() && !std::is_arithmetic_v<T>;
    return empty ? T() : value.get<T>();
  }
}

/// The inverse of value_as().
template <class T>
Value as_value(const T& value) {
  if constexpr (kIsOptional<T>) {
    return value ? as_value(*value) : Value();
  } else if constexpr (std::is_enum_v<T>) {
    return word_of(value);
  } else if constexpr (std::is_same_v<T, IntegerOrText> || std::is_same_v<T, TruthOrText> ||
                       std::is_same_v<T, NumberOrText>) {
    return std::visit([](const auto& one) { return Value(one); }, value);
  } else if constexpr (std::is_same_v<T, Section>) {
    return value.keys;
  } else {
    return value;
  }
}

}  // namespace acc::launcher
