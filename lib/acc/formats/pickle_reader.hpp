// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace acc {

/// A value in a Python pickle: plain data. An object is its class and its arguments; no code is executed.
/// Values can refer to each other, also in cycles.
struct PickleValue {
  using Pairs = std::vector<std::pair<const PickleValue*, const PickleValue*>>;
  enum class Type {
    none,
    boolean,
    integer,
    unsigned_integer,  ///< an integer of 64 bits that an std::int64_t cannot have: `integer` has its bits
    real,
    text,
    bytes,
    tuple,
    list,
    dict,
    set,
    class_name,
    object,
    persistent,  ///< an object outside of the pickle, identified by `arguments`
  };

  Type type = Type::none;
  std::int64_t integer = 0;  ///< of a boolean too
  double real = 0;
  std::string text = {};                       ///< of bytes too; `module.name` of a class and an object
  std::vector<const PickleValue*> items = {};  ///< of a tuple, a list or a set
  Pairs pairs = {};                            ///< of a dict
  const PickleValue* arguments = nullptr;      ///< of an object: the arguments of its class, if known
  const PickleValue* state = nullptr;          ///< of an object: its __dict__, if set
};

/// Reads pickles of protocol 2 to 5. Work and memory grow with the bytes of the pickle alone.
class PickleReader {
 public:
  /// Objects of `classes` (`module.name`) are read, all others refused.
  explicit PickleReader(std::vector<std::string_view> classes);

  /// Objects of every class are read. One that is also a list or a dict has `items` or `pairs`, and its
  /// `state` can be any value.
  static PickleReader of_any_class();

  /// The pickle's value, which this reader owns. Throws Error{config} for an invalid or unsupported pickle.
  const PickleValue& read(std::string_view bytes);

 private:
  using Type = PickleValue::Type;

  enum class Opcode : std::uint8_t;

  void step(Opcode opcode);
  bool push_scalar(Opcode opcode);
  bool push_container(Opcode opcode);
  bool fill(Opcode opcode);
  bool use_memo(Opcode opcode);
  bool make(Opcode opcode);

  std::string_view take_line();
  std::string_view take(std::size_t size);
  std::uint64_t take_number(std::size_t size);
  std::int64_t take_signed(std::size_t size);
  double take_real();

  PickleValue& push(PickleValue value);
  void push_again(std::uint64_t memo);
  PickleValue* pop();
  PickleValue& top();
  std::vector<PickleValue*> pop_to_mark();
  void push_tuple(const std::vector<PickleValue*>& items);
  void push_class(const std::string& full_name);
  void push_number(std::uint64_t size);
  void make_object();
  void build();
  void add_items(const std::vector<PickleValue*>& items, Type type);
  void set_items(const std::vector<PickleValue*>& items);

  std::vector<std::string_view> classes_ = {};
  bool any_class_ = false;
  std::string_view rest_ = {};
  std::deque<PickleValue> values_ = {};  // every value pushed, at stable addresses
  std::vector<PickleValue*> stack_ = {};
  std::vector<std::size_t> marks_ = {};
  std::vector<PickleValue*> memo_ = {};
};

}  // namespace acc
