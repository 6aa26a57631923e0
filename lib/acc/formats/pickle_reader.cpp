// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/pickle_reader.hpp"

#include <algorithm>
#include <bit>

#include "acc/formats/refusal.hpp"

namespace acc {
namespace {

constexpr std::uint64_t kNewestProtocol = 5;

}  // namespace

// The opcodes of CPython's pickletools that protocols 2 to 5 write for data.
enum class PickleReader::Opcode : std::uint8_t {
  mark = '(',
  stop = '.',
  pop_one = '0',
  pop_mark = '1',
  none = 'N',
  new_true = 0x88,
  new_false = 0x89,
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  long1 = 0x8a,
  long4 = 0x8b,
  binfloat = 'G',
  binunicode = 'X',
  short_binunicode = 0x8c,
  binunicode8 = 0x8d,
  binstring = 'T',
  short_binstring = 'U',
  binbytes = 'B',
  short_binbytes = 'C',
  binbytes8 = 0x8e,
  bytearray8 = 0x96,
  empty_tuple = ')',
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  empty_list = ']',
  append = 'a',
  appends = 'e',
  empty_dict = '}',
  setitem = 's',
  setitems = 'u',
  empty_set = 0x8f,
  additems = 0x90,
  frozenset = 0x91,
  binget = 'h',
  long_binget = 'j',
  binput = 'q',
  long_binput = 'r',
  memoize = 0x94,
  proto = 0x80,
  frame = 0x95,
  global = 'c',
  stack_global = 0x93,
  newobj = 0x81,
  reduce = 'R',
  build_state = 'b',
  binpersid = 'Q',
};

PickleReader::PickleReader(std::vector<std::string_view> classes) : classes_(std::move(classes)) {}

PickleReader PickleReader::of_any_class() {
  PickleReader reader({});
  reader.any_class_ = true;
  return reader;
}

const PickleValue& PickleReader::read(std::string_view bytes) {
  rest_ = bytes;
  values_.clear();
  stack_.clear();
  marks_.clear();
  memo_.clear();
  while (true) {
    const auto opcode = static_cast<Opcode>(take(1).front());
    if (opcode == Opcode::stop) break;
    step(opcode);
  }
  const PickleValue& result = *pop();
  if (!stack_.empty() || !marks_.empty() || !rest_.empty()) refuse("the pickle leaves values on its stack");
  return result;
}

void PickleReader::step(Opcode opcode) {
  switch (opcode) {
    case Opcode::proto:
      if (take_number(1) > kNewestProtocol) refuse("the pickle's protocol is newer than 5");
      return;
    case Opcode::frame:
      take_number(8);  // frames do not matter: the whole pickle is in memory
      return;
    case Opcode::mark:
      marks_.push_back(stack_.size());
      return;
    case Opcode::pop_one:
      pop();
      return;
    case Opcode::pop_mark:
      pop_to_mark();
      return;
    default:
      break;
  }
  if (push_scalar(opcode) || push_container(opcode) || fill(opcode) || use_memo(opcode) || make(opcode))
    return;
  refuse("the pickle uses opcode " + std::to_string(static_cast<int>(opcode)) +
         ", which plain data does not need");
}

bool PickleReader::push_scalar(Opcode opcode) {
  const auto push_text = [this](Type type, std::size_t size_bytes) {
    push({.type = type, .text = std::string(take(take_number(size_bytes)))});
    return true;
  };
  switch (opcode) {
    case Opcode::none:
      push({.type = Type::none});
      return true;
    case Opcode::new_true:
    case Opcode::new_false:
      push({.type = Type::boolean, .integer = opcode == Opcode::new_true ? 1 : 0});
      return true;
    case Opcode::binint1:
      push({.type = Type::integer, .integer = static_cast<std::int64_t>(take_number(1))});
      return true;
    case Opcode::binint2:
      push({.type = Type::integer, .integer = static_cast<std::int64_t>(take_number(2))});
      return true;
    case Opcode::binint:
      push({.type = Type::integer, .integer = take_signed(4)});
      return true;
    case Opcode::long1:
    case Opcode::long4:
      push_number(take_number(opcode == Opcode::long1 ? 1 : 4));
      return true;
    case Opcode::binfloat:
      push({.type = Type::real, .real = take_real()});
      return true;
    case Opcode::short_binunicode:
      return push_text(Type::text, 1);
    case Opcode::binunicode:
      return push_text(Type::text, 4);
    case Opcode::binunicode8:
      return push_text(Type::text, 8);
    case Opcode::short_binbytes:
    case Opcode::short_binstring:
      return push_text(Type::bytes, 1);
    case Opcode::binbytes:
    case Opcode::binstring:
      return push_text(Type::bytes, 4);
    case Opcode::binbytes8:
    case Opcode::bytearray8:
      return push_text(Type::bytes, 8);
    default:
      return false;
  }
}

bool PickleReader::push_container(Opcode opcode) {
  switch (opcode) {
    case Opcode::empty_tuple:
      push({.type = Type::tuple});
      return true;
    case Opcode::tuple:
      push_tuple(pop_to_mark());
      return true;
    case Opcode::tuple1:
    case Opcode::tuple2:
    case Opcode::tuple3: {
      std::vector<PickleValue*> items(static_cast<std::size_t>(opcode) -
                                      static_cast<std::size_t>(Opcode::tuple1) + 1);
      std::ranges::generate(items.rbegin(), items.rend(), [this] { return pop(); });
      push_tuple(items);
      return true;
    }
    case Opcode::empty_list:
      push({.type = Type::list});
      return true;
    case Opcode::empty_dict:
      push({.type = Type::dict});
      return true;
    case Opcode::empty_set:
      push({.type = Type::set});
      return true;
    case Opcode::frozenset: {
      const auto items = pop_to_mark();
      push({.type = Type::set, .items = {items.begin(), items.end()}});
      return true;
    }
    default:
      return false;
  }
}

bool PickleReader::fill(Opcode opcode) {
  switch (opcode) {
    case Opcode::append:
      add_items({pop()}, Type::list);
      return true;
    case Opcode::appends:
      add_items(pop_to_mark(), Type::list);
      return true;
    case Opcode::additems:
      add_items(pop_to_mark(), Type::set);
      return true;
    case Opcode::setitem: {
      PickleValue* value = pop();
      PickleValue* key = pop();
      set_items({key, value});
      return true;
    }
    case Opcode::setitems:
      set_items(pop_to_mark());
      return true;
    case Opcode::build_state:
      build();
      return true;
    default:
      return false;
  }
}

bool PickleReader::use_memo(Opcode opcode) {
  switch (opcode) {
    case Opcode::memoize:
      memo_.push_back(&top());
      return true;
    case Opcode::binput:
    case Opcode::long_binput:
      if (take_number(opcode == Opcode::binput ? 1 : 4) != memo_.size()) refuse("the pickle's memo has gaps");
      memo_.push_back(&top());
      return true;
    case Opcode::binget:
      push_again(take_number(1));
      return true;
    case Opcode::long_binget:
      push_again(take_number(4));
      return true;
    default:
      return false;
  }
}

bool PickleReader::make(Opcode opcode) {
  switch (opcode) {
    case Opcode::global: {
      const std::string module(take_line());
      push_class(module + "." + std::string(take_line()));
      return true;
    }
    case Opcode::stack_global: {
      const PickleValue* name = pop();
      const PickleValue* module = pop();
      if (name->type != Type::text || module->type != Type::text)
        refuse("the pickle has a class name that is not a string");
      push_class(module->text + "." + name->text);
      return true;
    }
    case Opcode::newobj:
    case Opcode::reduce:
      make_object();
      return true;
    case Opcode::binpersid: {
      const PickleValue* id = pop();
      push({.type = Type::persistent, .arguments = id});
      return true;
    }
    default:
      return false;
  }
}

std::string_view PickleReader::take(std::size_t size) {
  if (size > rest_.size()) refuse("the pickle ends in the middle");
  const std::string_view bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return bytes;
}

std::string_view PickleReader::take_line() {
  const std::size_t end = rest_.find('\n');
  if (end == std::string_view::npos) refuse("the pickle ends in the middle");
  return take(end + 1).substr(0, end);
}

// Big endian, unlike all other numbers.
double PickleReader::take_real() {
  std::uint64_t bits = 0;
  for (const char byte : take(8)) bits = bits << 8U | static_cast<std::uint8_t>(byte);
  return std::bit_cast<double>(bits);
}

// Little endian, whatever the host is.
std::uint64_t PickleReader::take_number(std::size_t size) {
  std::uint64_t number = 0;
  unsigned shift = 0;
  for (const char byte : take(size)) {
    number |= std::uint64_t{static_cast<std::uint8_t>(byte)} << shift;
    shift += 8;
  }
  return number;
}

std::int64_t PickleReader::take_signed(std::size_t size) {
  if (size == 0) return 0;
  const auto unused = static_cast<unsigned>(64 - 8 * size);
  return static_cast<std::int64_t>(take_number(size) << unused) >> unused;
}

PickleValue& PickleReader::push(PickleValue value) {
  values_.push_back(std::move(value));
  stack_.push_back(&values_.back());
  return values_.back();
}

void PickleReader::push_again(std::uint64_t memo) {
  if (memo >= memo_.size()) refuse("the pickle refers to a missing memo entry");
  stack_.push_back(memo_[memo]);
}

// Values below the last mark cannot be popped before the mark.
PickleValue* PickleReader::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("the pickle pops an empty stack");
  PickleValue* value = stack_.back();
  stack_.pop_back();
  return value;
}

PickleValue& PickleReader::top() {
  PickleValue* value = pop();
  stack_.push_back(value);
  return *value;
}

std::vector<PickleValue*> PickleReader::pop_to_mark() {
  if (marks_.empty()) refuse("the pickle lacks a mark");
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleValue*> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

void PickleReader::push_tuple(const std::vector<PickleValue*>& items) {
  push({.type = Type::tuple, .items = {items.begin(), items.end()}});
}

void PickleReader::push_class(const std::string& full_name) {
  if (!any_class_ && std::ranges::find(classes_, full_name) == classes_.end())
    refuse("the pickle has an unknown class, " + full_name.substr(0, 100));
  push({.type = Type::class_name, .text = full_name});
}

void PickleReader::push_number(std::uint64_t size) {
  if (size <= 8) {
    push({.type = Type::integer, .integer = take_signed(size)});
  } else if (any_class_) {
    const std::uint64_t lowest = take_number(8);
    const bool is_unsigned = take(size - 8) == std::string_view("\0", 1);
    push(is_unsigned
             ? PickleValue{.type = Type::unsigned_integer, .integer = static_cast<std::int64_t>(lowest)}
             : PickleValue{.type = Type::object, .text = "builtins.int"});
  } else {
    refuse("a number in the pickle has more than 64 bits");
  }
}

// Python would call the class here; keeps its arguments instead.
void PickleReader::make_object() {
  const PickleValue* arguments = pop();
  const PickleValue* class_name = pop();
  if (arguments->type != Type::tuple || (class_name->type != Type::class_name && !any_class_))
    refuse("the pickle makes an object without a class");
  push({.type = Type::object, .text = class_name->text, .arguments = arguments});
}

void PickleReader::build() {
  const PickleValue* state = pop();
  PickleValue& object = top();
  if (object.type != Type::object || (state->type != Type::dict && !any_class_))
    refuse("the pickle sets the state of a value that is not an object");
  object.state = state;
}

void PickleReader::add_items(const std::vector<PickleValue*>& items, Type type) {
  if (top().type != type && !(any_class_ && top().type == Type::object)) {
    refuse(std::string("the pickle adds items to a value that is not a ") +
           (type == Type::set ? "set" : "list"));
  }
  top().items.insert(top().items.end(), items.begin(), items.end());
}

void PickleReader::set_items(const std::vector<PickleValue*>& items) {
  const bool fits = top().type == Type::dict || (any_class_ && top().type == Type::object);
  if (!fits || items.size() % 2 != 0) refuse("the pickle adds pairs to a value that is not a dict");
  for (std::size_t i = 0; i < items.size(); i += 2) top().pairs.emplace_back(items[i], items[i + 1]);
}

}  // namespace acc
