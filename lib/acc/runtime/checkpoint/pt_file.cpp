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
#include "acc/formats/pickle_writer.hpp"
#include "acc/formats/torch_file.hpp"
#include "acc/runtime/checkpoint/torch_types.hpp"
#include "acc/runtime/checkpoint/zip_writer.hpp"

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
  explicit Decoder(std::shared_ptr<MappedFile> mapped)
      : mapped_(std::move(mapped)), file_({mapped_->data(), mapped_->size()}) {
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
    const at::ScalarType type =
        detail::kScalarTypes.at(static_cast<std::size_t>(stored.dtype - kTorchDtypes.data()));
    const at::TensorOptions options(type);
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

namespace {

// The pickle protocol that torch.load reads with weights_only=True.
constexpr int kProtocol = 2;

// Writes the pickle of a value, and collects the tensors, to which the pickle refers by index.
class Encoder {
 public:
  explicit Encoder(const std::filesystem::path& file) : file_(file) {}

  std::string encode(const PtValue& value) {
    put(value);
    return out_.finish();
  }
  const std::vector<at::Tensor>& tensors() const { return tensors_; }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error({.what = what, .where = file_.string()});
  }

  void put(const PtValue& value) {
    std::visit([this](const auto& content) { put_content(content); }, value.content);
  }

  void put_content(std::monostate /*none*/) { out_.none(); }
  void put_content(bool value) { out_.boolean(value); }
  void put_content(std::int64_t value) { out_.integer(value); }
  void put_content(double value) { out_.real(value); }
  void put_content(const std::string& value) { out_.text(value); }

  void put_content(const PtList& list) {
    out_.empty_list();
    out_.mark();
    for (const PtValue& item : list) put(item);
    out_.fill_list();
  }

  void put_content(const PtTuple& tuple) {
    out_.mark();
    for (const PtValue& item : tuple.items) put(item);
    out_.tuple_of_marked();
  }

  void put_content(const PtDict& dict) {
    out_.empty_dict();
    out_.mark();
    for (const PtEntry& entry : dict) {
      put(entry.key);
      put(entry.value);
    }
    out_.fill_dict();
  }

  void put_content(const PtObject& object) {
    refuse(fmt::format("cannot hold an object of class {}", object.class_name));
  }

  void put_numbers(c10::IntArrayRef numbers) {
    out_.mark();
    for (const std::int64_t number : numbers) out_.integer(number);
    out_.tuple_of_marked();
  }

  // As Tensor.__reduce_ex__: a function of torch._utils and its arguments.
  void put_content(const at::Tensor& given) {
    const at::Tensor tensor = given.detach().cpu().contiguous().resolve_conj().resolve_neg();
    const auto* type = std::ranges::find(detail::kScalarTypes, tensor.scalar_type());
    if (type == detail::kScalarTypes.end())
      refuse(
          fmt::format("{} cannot be written to a file of torch.save", c10::toString(tensor.scalar_type())));
    const TorchDtype& dtype = kTorchDtypes.at(static_cast<std::size_t>(type - detail::kScalarTypes.begin()));
    const bool typed = !dtype.storage.empty();
    out_.class_name("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_.mark();
    put_storage(tensor, dtype);
    out_.integer(0);
    put_numbers(tensor.sizes());
    put_numbers(tensor.strides());
    out_.boolean(false);
    out_.class_name("collections", "OrderedDict");
    out_.empty_tuple();
    out_.call();
    if (!typed) out_.class_name("torch", dtype.name);
    out_.tuple_of_marked();
    out_.call();
    tensors_.push_back(tensor);
  }

  void put_storage(const at::Tensor& tensor, const TorchDtype& dtype) {
    const bool typed = !dtype.storage.empty();
    out_.mark();
    out_.text("storage");
    out_.class_name(typed ? "torch" : "torch.storage", typed ? dtype.storage : "UntypedStorage");
    out_.text(std::to_string(tensors_.size()));
    out_.text("cpu");
    out_.integer(typed ? tensor.numel() : static_cast<std::int64_t>(tensor.nbytes()));
    out_.tuple_of_marked();
    out_.persistent();
  }

  const std::filesystem::path& file_;
  PickleWriter out_ = PickleWriter(kProtocol);
  std::vector<at::Tensor> tensors_ = {};
};

}  // namespace

void write_pt_file(const std::filesystem::path& file, const PtValue& value) {
  Encoder encoder(file);
  const std::string pickle = encoder.encode(value);
  detail::ZipWriter zip;
  zip.add("archive/data.pkl", pickle);
  zip.add("archive/byteorder", "little");
  const std::vector<at::Tensor>& tensors = encoder.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    zip.add("archive/data/" + std::to_string(i),
            {static_cast<const char*>(tensors[i].const_data_ptr()), tensors[i].nbytes()});
  }
  zip.add("archive/version", "3\n");
  replace_file(file, zip.finish());
}

}  // namespace acc
