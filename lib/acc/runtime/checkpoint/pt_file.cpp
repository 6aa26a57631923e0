// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/pt_file.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/formats/torch_file.hpp"
#include "acc/runtime/checkpoint/pt_archive.hpp"
#include "acc/runtime/checkpoint/torch_types.hpp"

namespace acc {
namespace {

template <class Key, class Given>
const PtValue* find_in(const PtValue& dict, const Given& key) {
  const auto* entries = dict.get_if<PtDict>();
  if (entries == nullptr) return nullptr;
  for (const PtEntry& entry : *entries) {
    const auto* own = entry.key.get_if<Key>();
    if (own != nullptr && *own == key) return &entry.value;
  }
  return nullptr;
}

}  // namespace

const PtValue* PtValue::find(std::string_view key) const {
  return find_in<std::string>(*this, key);
}

const PtValue* PtValue::find(std::int64_t key) const {
  return find_in<std::int64_t>(*this, key);
}

std::optional<double> PtValue::number() const {
  if (const auto* truth = get_if<bool>()) return *truth ? 1 : 0;
  if (const auto* whole = get_if<std::int64_t>()) return static_cast<double>(*whole);
  if (const auto* large = get_if<std::uint64_t>()) return static_cast<double>(*large);
  if (const auto* real = get_if<double>()) return *real;
  const auto* tensor = get_if<at::Tensor>();
  if (tensor != nullptr && tensor->numel() == 1 && !tensor->is_complex()) return tensor->item<double>();
  return {};
}

namespace {

using Type = PickleValue::Type;

// Values in a pickle can refer to each other: they could form a cycle, or grow without bound when copied.
constexpr int kMaxDepth = 200;
constexpr std::size_t kMaxValuesPerByte = 64;

class Decoder {
 public:
  Decoder(std::shared_ptr<MappedFile> mapped, std::string_view bytes)
      : mapped_(std::move(mapped)), file_(bytes) {
    values_left_ = kMaxValuesPerByte * (file_.root_bytes() + 1);
  }

  PtValue decode() { return value(file_.root(), 0); }

 private:
  PtValue value(const PickleValue& from, int depth) {
    if (depth > kMaxDepth || values_left_-- == 0)
      throw Error({.kind = ErrorKind::config, .what = "holds values that contain themselves"});
    switch (from.type) {
      case Type::none:
        return {};
      case Type::boolean:
        return from.integer != 0;
      case Type::integer:
        return from.integer;
      case Type::unsigned_integer:
        return unsigned_integer(from);
      case Type::real:
        return from.real;
      case Type::text:
      case Type::bytes:
        return from.text;
      case Type::tuple:
        return PtTuple{items(from, depth)};
      case Type::list:
      case Type::set:
        return items(from, depth);
      case Type::dict:
        return dict(from, depth);
      case Type::object:
        return object(from, depth);
      case Type::class_name:
        return PtObject{from.text};
      case Type::persistent:
        return PtObject{"torch.Storage"};
    }
    return {};
  }

  static PtValue unsigned_integer(const PickleValue& from) {
    PtValue number;
    number.content = static_cast<std::uint64_t>(from.integer);
    return number;
  }

  PtList items(const PickleValue& from, int depth) {
    PtList list;
    for (const PickleValue* item : from.items) list.push_back(value(*item, depth + 1));
    return list;
  }

  PtDict dict(const PickleValue& from, int depth) {
    PtDict entries;
    for (const auto& [key, item] : from.pairs)
      entries.push_back({value(*key, depth + 1), value(*item, depth + 1)});
    return entries;
  }

  PtValue object(const PickleValue& from, int depth) {
    if (from.text == "collections.OrderedDict" || from.text == "collections.defaultdict")
      return dict(from, depth);
    const PickleValue* argument = first_argument(from);
    if (from.text == "torch.Size" && argument != nullptr) return PtTuple{items(*argument, depth)};
    if (is_builtin(from, "set") || is_builtin(from, "frozenset"))
      return argument != nullptr ? items(*argument, depth) : PtList();
    if (auto bytes = bytes_of(from)) return *std::move(bytes);
    if (const auto stored = file_.tensor(from)) return tensor_of(*stored);
    return PtObject{from.text};
  }

  // Null for an object that has none.
  static const PickleValue* first_argument(const PickleValue& object) {
    return object.arguments != nullptr && !object.arguments->items.empty() ? object.arguments->items.front()
                                                                           : nullptr;
  }

  // Before protocol 3 the module has Python 2's name.
  static bool is_builtin(const PickleValue& object, std::string_view name) {
    return object.text == fmt::format("__builtin__.{}", name) ||
           object.text == fmt::format("builtins.{}", name);
  }

  // Protocol 2, which torch.save writes, has no bytes: they are the text whose Latin-1 they are.
  static std::optional<std::string> bytes_of(const PickleValue& object) {
    const PickleValue* argument = first_argument(object);
    if (is_builtin(object, "bytes") || is_builtin(object, "bytearray")) {
      if (argument == nullptr) return "";
      if (argument->type == Type::bytes) return argument->text;
      return argument->type == Type::object ? encoded(*argument) : std::nullopt;
    }
    return encoded(object);
  }

  static std::optional<std::string> encoded(const PickleValue& object) {
    const PickleValue* argument = first_argument(object);
    const bool is_encoded = object.text == "_codecs.encode" && object.arguments != nullptr &&
                            object.arguments->items.size() == 2 && argument->type == Type::text &&
                            object.arguments->items[1]->text == "latin1";
    if (!is_encoded) return std::nullopt;
    std::string bytes = to_bytes(argument->text);
    if (to_characters(bytes) != argument->text) return std::nullopt;  // it has other characters
    return bytes;
  }

  at::Tensor tensor_of(const StoredTensor& stored) const {
    const at::TensorOptions options(detail::scalar_type_of(*stored.dtype));
    if (stored.bytes.empty()) return at::empty(stored.sizes, options);
    // The mapping is private (copy-on-write): writing to it does not change the file.
    auto* first = const_cast<char*>(stored.bytes.data());
    if (reinterpret_cast<std::uintptr_t>(first) % stored.dtype->bytes == 0) {
      return at::from_blob(
          first, stored.sizes, stored.strides, [mapped = mapped_](void* /*data*/) {}, options);
    }
    at::Tensor copy =
        at::empty({static_cast<std::int64_t>(stored.bytes.size())}, at::TensorOptions(at::kByte));
    std::memcpy(copy.mutable_data_ptr(), stored.bytes.data(), stored.bytes.size());
    return at::from_blob(
        copy.mutable_data_ptr(), stored.sizes, stored.strides, [copy](void* /*data*/) {}, options);
  }

  std::shared_ptr<MappedFile> mapped_;
  TorchFile file_;
  std::size_t values_left_ = 0;
};

}  // namespace

namespace detail {

PtValue read_pt_archive(const std::filesystem::path& file, std::uint64_t begin,
                        std::optional<std::uint64_t> length) {
  const auto mapped = std::make_shared<MappedFile>(file);
  try {
    const std::string_view bytes(mapped->data(), mapped->size());
    if (begin > bytes.size() || length.value_or(0) > bytes.size() - begin)
      throw Error({.kind = ErrorKind::config, .what = "is truncated"});
    return Decoder(mapped, bytes.substr(begin, length.value_or(bytes.size()))).decode();
  } catch (const Error& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) problem.where = file.string();
    throw Error(error.kind(), std::move(problems));
  }
}

}  // namespace detail

PtValue read_pt_file(const std::filesystem::path& file) {
  return detail::read_pt_archive(file, 0, std::nullopt);
}

void write_pt_file(const std::filesystem::path& file, const PtValue& value) {
  detail::PtArchive archive(value, file.string());
  replace_file(file, archive.parts());
}

}  // namespace acc
