// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/pickle_reader.hpp"

#include <algorithm>

#include "acc/base/error.hpp"

namespace acc {
namespace {

// The opcodes of CPython's pickletools that plain data and objects with a __dict__ need.
enum Opcode : std::uint8_t {
  mark = '(',
  stop = '.',
  none = 'N',
  new_true = 0x88,
  new_false = 0x89,
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  long1 = 0x8a,
  binunicode = 'X',
  short_binunicode = 0x8c,
  binbytes = 'B',
  short_binbytes = 'C',
  empty_tuple = ')',
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  empty_dict = '}',
  setitem = 's',
  setitems = 'u',
  empty_set = 0x8f,
  additems = 0x90,
  binget = 'h',
  long_binget = 'j',
  binput = 'q',
  long_binput = 'r',
  memoize = 0x94,
  proto = 0x80,
  frame = 0x95,
  stack_global = 0x93,
  newobj = 0x81,
  reduce = 'R',
  build_state = 'b',
};

constexpr std::uint64_t kNewestProtocol = 5;

[[noreturn]] void refuse(const std::string& what) {
  throw Error({.kind = ErrorKind::rendezvous, .what = what});
}

}  // namespace

PickleReader::PickleReader(std::vector<std::string_view> classes) : classes_(std::move(classes)) {}

const PickleValue& PickleReader::read(std::string_view bytes) {
  rest_ = bytes;
  values_.clear();
  stack_.clear();
  marks_.clear();
  memo_.clear();
  while (true) {
    const auto opcode = static_cast<std::uint8_t>(take(1).front());
    if (opcode == Opcode::stop) break;
    step(opcode);
  }
  const PickleValue& result = *pop();
  if (!stack_.empty() || !marks_.empty() || !rest_.empty()) refuse("something is left over in the pickle");
  return result;
}

void PickleReader::step(std::uint8_t opcode) {
  switch (opcode) {
    case Opcode::proto:
      if (take_number(1) > kNewestProtocol) refuse("the pickle's protocol is newer than 5");
      return;
    case Opcode::frame:
      take_number(8);  // what follows is in the same bytes
      return;
    case Opcode::none:
      push({.type = Type::none});
      return;
    case Opcode::new_true:
    case Opcode::new_false:
      push({.type = Type::boolean, .integer = opcode == Opcode::new_true ? 1 : 0});
      return;
    case Opcode::binint1:
      push({.type = Type::integer, .integer = static_cast<std::int64_t>(take_number(1))});
      return;
    case Opcode::binint2:
      push({.type = Type::integer, .integer = static_cast<std::int64_t>(take_number(2))});
      return;
    case Opcode::binint:
      push({.type = Type::integer, .integer = take_signed(4)});
      return;
    case Opcode::long1: {
      const std::uint64_t size = take_number(1);
      if (size > 8) refuse("a number in the pickle has more than 64 bits");
      push({.type = Type::integer, .integer = take_signed(size)});
      return;
    }
    case Opcode::short_binunicode:
      push({.type = Type::text, .text = std::string(take(take_number(1)))});
      return;
    case Opcode::binunicode:
      push({.type = Type::text, .text = std::string(take(take_number(4)))});
      return;
    case Opcode::short_binbytes:
      push({.type = Type::bytes, .text = std::string(take(take_number(1)))});
      return;
    case Opcode::binbytes:
      push({.type = Type::bytes, .text = std::string(take(take_number(4)))});
      return;
    case Opcode::mark:
      marks_.push_back(stack_.size());
      return;
    case Opcode::empty_tuple:
      push({.type = Type::tuple});
      return;
    case Opcode::tuple:
      push_tuple(pop_to_mark());
      return;
    case Opcode::tuple1:
    case Opcode::tuple2:
    case Opcode::tuple3: {
      std::vector<PickleValue*> items(opcode - Opcode::tuple1 + 1U);
      std::ranges::generate(items.rbegin(), items.rend(), [this] { return pop(); });
      push_tuple(items);
      return;
    }
    case Opcode::empty_dict:
      push({.type = Type::dict});
      return;
    case Opcode::setitem: {
      PickleValue* value = pop();
      PickleValue* key = pop();
      set_items({key, value});
      return;
    }
    case Opcode::setitems:
      set_items(pop_to_mark());
      return;
    case Opcode::empty_set:
      push({.type = Type::set});
      return;
    case Opcode::additems: {
      const auto items = pop_to_mark();
      if (top().type != Type::set) refuse("the pickle adds items to what is not a set");
      top().items.insert(top().items.end(), items.begin(), items.end());
      return;
    }
    case Opcode::memoize:
      memo_.push_back(&top());
      return;
    case Opcode::binput:
    case Opcode::long_binput:
      if (take_number(opcode == Opcode::binput ? 1 : 4) != memo_.size()) refuse("the pickle's memo has gaps");
      memo_.push_back(&top());
      return;
    case Opcode::binget:
      push_again(take_number(1));
      return;
    case Opcode::long_binget:
      push_again(take_number(4));
      return;
    case Opcode::stack_global:
      push_class();
      return;
    case Opcode::newobj:
    case Opcode::reduce:
      make_object();
      return;
    case Opcode::build_state:
      build();
      return;
    default:
      refuse("the pickle uses opcode " + std::to_string(opcode) + ", which plain data does not need");
  }
}

std::string_view PickleReader::take(std::size_t size) {
  if (size > rest_.size()) refuse("the pickle ends in the middle");
  const std::string_view bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return bytes;
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
  if (memo >= memo_.size()) refuse("the pickle refers to what is not in its memo");
  stack_.push_back(memo_[memo]);
}

// Nothing below the last mark can be taken before the mark itself.
PickleValue* PickleReader::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("the pickle takes more than it has put");
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
  if (marks_.empty()) refuse("the pickle has no mark where it needs one");
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleValue*> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

void PickleReader::push_tuple(const std::vector<PickleValue*>& items) {
  push({.type = Type::tuple, .items = {items.begin(), items.end()}});
}

void PickleReader::push_class() {
  const PickleValue* name = pop();
  const PickleValue* module = pop();
  if (name->type != Type::text || module->type != Type::text) refuse("the pickle names a class by no text");
  const std::string full = module->text + "." + name->text;
  if (std::ranges::find(classes_, full) == classes_.end())
    refuse("the pickle holds an unknown class, " + full.substr(0, 100));
  push({.type = Type::class_name, .text = full});
}

// Python would call the class here; we keep what it would be called with.
void PickleReader::make_object() {
  const PickleValue* arguments = pop();
  const PickleValue* of = pop();
  if (arguments->type != Type::tuple || of->type != Type::class_name)
    refuse("the pickle makes an object of no class");
  push({.type = Type::object, .text = of->text, .arguments = arguments});
}

void PickleReader::build() {
  const PickleValue* state = pop();
  PickleValue& object = top();
  if (object.type != Type::object || state->type != Type::dict)
    refuse("the pickle fills what is not an object");
  object.state = state;
}

void PickleReader::set_items(const std::vector<PickleValue*>& items) {
  if (top().type != Type::dict || items.size() % 2 != 0) refuse("the pickle fills what is not a dict");
  for (std::size_t i = 0; i < items.size(); i += 2) top().pairs.emplace_back(items[i], items[i + 1]);
}

}  // namespace acc
