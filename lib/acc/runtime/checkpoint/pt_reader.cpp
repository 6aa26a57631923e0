// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/pt_reader.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/mapped_file.hpp"
#include "acc/base/torch_file.hpp"
#include "acc/runtime/checkpoint/torch_types.hpp"

namespace acc {
namespace {

using Type = PickleValue::Type;

// Values that refer to each other could be a circle, or grow without end when they are copied out.
constexpr int kMostDepth = 200;
constexpr std::size_t kMostValuesPerByte = 64;

class Decoder {
 public:
  explicit Decoder(std::shared_ptr<MappedFile> mapped)
      : mapped_(std::move(mapped)), file_({mapped_->data(), mapped_->size()}) {
    values_left_ = kMostValuesPerByte * (file_.root_bytes() + 1);
  }

  PtValue decode() { return value(file_.root(), 0); }

 private:
  PtValue value(const PickleValue& from, int depth) {
    if (depth > kMostDepth || values_left_-- == 0)
      throw Error({.kind = ErrorKind::config, .what = "holds values that contain themselves"});
    switch (from.type) {
      case Type::none:
        return {};
      case Type::boolean:
        return from.integer != 0;
      case Type::integer:
        return from.integer;
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
    if (from.text == "collections.OrderedDict") return dict(from, depth);
    if (from.text == "torch.Size" && from.arguments != nullptr && from.arguments->items.size() == 1)
      return PtTuple{items(*from.arguments->items.front(), depth)};
    if (const auto stored = file_.tensor(from)) return tensor_of(*stored);
    return PtObject{from.text};
  }

  at::Tensor tensor_of(const StoredTensor& stored) const {
    const at::ScalarType type = kScalarTypes.at(static_cast<std::size_t>(stored.dtype - kTorchDtypes.data()));
    const at::TensorOptions options(type);
    if (stored.bytes.empty()) return at::empty(stored.sizes, options);
    // The mapping is this process's own: writing to it is allowed.
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

PtValue read_pt_file(const std::filesystem::path& file) {
  const auto mapped = std::make_shared<MappedFile>(file);
  try {
    return Decoder(mapped).decode();
  } catch (const Error& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) problem.where = file.string();
    throw Error(error.kind(), std::move(problems));
  }
}

}  // namespace acc
