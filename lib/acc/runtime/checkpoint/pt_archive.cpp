// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/pt_archive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/formats/pickle_writer.hpp"
#include "acc/runtime/checkpoint/torch_types.hpp"

namespace acc::detail {
namespace {

// The pickle protocol that torch.load reads with weights_only=True.
constexpr int kProtocol = 2;

// Writes the pickle of a value, and collects the tensors, to which the pickle refers by index.
class Encoder {
 public:
  explicit Encoder(std::string where) : where_(std::move(where)) {}

  std::string encode(const PtValue& value) {
    put(value);
    return out_.finish();
  }
  const std::vector<at::Tensor>& tensors() const { return tensors_; }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw Error({.what = what, .where = where_}); }

  void put(const PtValue& value) {
    std::visit([this](const auto& content) { put_content(content); }, value.content);
  }

  void put_content(std::monostate /*none*/) { out_.none(); }
  void put_content(bool value) { out_.boolean(value); }
  void put_content(std::int64_t value) { out_.integer(value); }
  void put_content(double value) { out_.real(value); }
  void put_content(std::uint64_t value) { out_.unsigned_integer(value); }

  void put_content(const std::string& value) {
    if (is_utf8(value)) return out_.text(value);
    // Python's bytes, as protocol 2 has them.
    out_.class_name("_codecs", "encode");
    out_.mark();
    out_.text(to_characters(value));
    out_.text("latin1");
    out_.tuple_of_marked();
    out_.call();
  }

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
    const auto* type = std::ranges::find(kScalarTypes, tensor.scalar_type());
    if (type == kScalarTypes.end())
      refuse(
          fmt::format("{} cannot be written to a file of torch.save", c10::toString(tensor.scalar_type())));
    const TorchDtype& dtype = kTorchDtypes.at(static_cast<std::size_t>(type - kScalarTypes.begin()));
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

  std::string where_;
  PickleWriter out_ = PickleWriter(kProtocol);
  std::vector<at::Tensor> tensors_ = {};
};

}  // namespace

PtArchive::PtArchive(const PtValue& value, const std::string& where) {
  Encoder encoder(where);
  pickle_ = encoder.encode(value);
  tensors_ = encoder.tensors();
  zip_.add("archive/data.pkl", pickle_);
  zip_.add("archive/byteorder", "little");
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    zip_.add("archive/data/" + std::to_string(i),
             {static_cast<const char*>(tensors_[i].const_data_ptr()), tensors_[i].nbytes()});
  }
  zip_.add("archive/version", "3\n");
  parts_ = &zip_.finish();
}

std::uint64_t PtArchive::size() const {
  std::uint64_t size = 0;
  for (const std::string_view part : *parts_) size += part.size();
  return size;
}

}  // namespace acc::detail
