// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/torch_file.hpp"

#include "acc/formats/refusal.hpp"

namespace acc {
namespace {

using Type = PickleValue::Type;

constexpr std::string_view kPickle = "data.pkl";
// The first bytes of files that torch.save wrote before 1.6.
constexpr std::string_view kOldMagic = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr int kMaxDepth = 20;

[[noreturn]] void refuse_tensor() {
  refuse("is damaged: a tensor does not fit its storage");
}

std::uint64_t pickled_number(const PickleValue& value) {
  if (value.type != Type::integer || value.integer < 0) refuse_tensor();
  return static_cast<std::uint64_t>(value.integer);
}

std::vector<std::int64_t> pickled_numbers(const PickleValue& value) {
  // torch.Size is called with a tuple.
  const bool called =
      value.type == Type::object && value.arguments != nullptr && value.arguments->items.size() == 1;
  const PickleValue& numbers = called ? *value.arguments->items.front() : value;
  if (numbers.type != Type::tuple) refuse_tensor();
  std::vector<std::int64_t> result;
  for (const PickleValue* item : numbers.items)
    result.push_back(static_cast<std::int64_t>(pickled_number(*item)));
  return result;
}

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) refuse_tensor();
  return result;
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) refuse_tensor();
  return result;
}

// The number of elements from the first to the last of the tensor; 0 for an empty tensor.
std::uint64_t span_of(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
  if (sizes.size() != strides.size()) refuse_tensor();
  std::uint64_t span = 1;
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(sizes[i]);
    elements = product(elements, size);
    if (size > 0) span = sum(span, product(size - 1, static_cast<std::uint64_t>(strides[i])));
  }
  return elements == 0 ? 0 : span;
}

// The dtype that `torch.FloatStorage` or `torch.float32` names.
const TorchDtype* dtype_of(const std::string& name) {
  for (const TorchDtype& dtype : kTorchDtypes) {
    if (name == "torch." + std::string(dtype.name)) return &dtype;
    if (!dtype.storage.empty() && name == "torch." + std::string(dtype.storage)) return &dtype;
  }
  refuse("holds a tensor of type " + name.substr(0, 100) + ", which acc does not support");
}

}  // namespace

TorchFile::TorchFile(std::string_view bytes) {
  if (bytes.starts_with(kOldMagic)) {
    refuse("is in the format of PyTorch before 1.6",
           "write it again in Python: torch.save(torch.load(file), file)");
  }
  entries_ = read_zip(bytes);
  for (const auto& [name, data] : entries_) {
    if (name.ends_with(kPickle) && name.find('/') + kPickle.size() + 1 == name.size())
      prefix_ = name.substr(0, name.size() - kPickle.size());
  }
  if (prefix_.empty()) refuse("is not a file of torch.save: it has no data.pkl");
  if (entries_.contains(std::string(prefix_) + "constants.pkl")) {
    refuse("is a TorchScript archive, as torch.jit.save and torch::save of C++ write them",
           "save a state_dict in Python, or with save_model");
  }
  const std::string_view* order = find("byteorder");
  if (order != nullptr && *order != "little") refuse("was written on a big-endian machine");
  root_bytes_ = find(kPickle)->size();
  root_ = &reader_.read(*find(kPickle));
}

const std::string_view* TorchFile::find(std::string_view name) const {
  const auto entry = entries_.find(std::string(prefix_) + std::string(name));
  if (entry == entries_.end()) return nullptr;
  if (entry->second.data() == nullptr)
    refuse("holds the compressed or encrypted file '" + std::string(entry->first.substr(0, 100)) + "'");
  return &entry->second;
}

std::optional<StoredTensor> TorchFile::tensor(const PickleValue& value) const {
  if (value.type != Type::object || !value.text.starts_with("torch.")) return {};
  if (value.text.find("._rebuild_") == std::string::npos) return {};
  return rebuild(value.text, value.arguments, 0);
}

StoredTensor TorchFile::rebuild(const std::string& function, const PickleValue* arguments, int depth) const {
  if (arguments == nullptr || arguments->items.empty() || depth > kMaxDepth) refuse_tensor();
  const auto& items = arguments->items;
  if (function == "torch._utils._rebuild_tensor_v2" && items.size() >= 6)
    return view(items, nullptr, items.size() > 6 ? items[6] : nullptr);
  if (function == "torch._utils._rebuild_tensor_v3" && items.size() >= 7)
    return view(items, dtype_of(items[6]->text), items.size() > 7 ? items[7] : nullptr);
  if (function.starts_with("torch._utils._rebuild_parameter") && items[0]->type == Type::object)
    return rebuild(items[0]->text, items[0]->arguments, depth + 1);
  // A tensor with attributes of its own: (function, class, arguments, state).
  if (function == "torch._tensor._rebuild_from_type_v2" && items.size() >= 3)
    return rebuild(items[0]->text, items[2], depth + 1);
  refuse("holds a tensor of a kind that acc does not support (" + function.substr(0, 100) + ")");
}

// The arguments are storage, offset, sizes, strides, ...
StoredTensor TorchFile::view(const std::vector<const PickleValue*>& items, const TorchDtype* dtype,
                             const PickleValue* metadata) const {
  if (metadata != nullptr && !metadata->pairs.empty())
    refuse("holds a conjugated or negated view of a tensor");
  const PickleValue* id = items[0]->type == Type::persistent ? items[0]->arguments : nullptr;
  if (id == nullptr || id->items.size() < 5 || id->items[2]->type != Type::text) refuse_tensor();
  const std::string_view* storage = find("data/" + id->items[2]->text);
  if (storage == nullptr) refuse_tensor();
  StoredTensor tensor{.dtype = dtype != nullptr ? dtype : dtype_of(id->items[1]->text),
                      .sizes = pickled_numbers(*items[2]),
                      .strides = pickled_numbers(*items[3])};
  const std::uint64_t begin = product(pickled_number(*items[1]), tensor.dtype->bytes);
  const std::uint64_t size = product(span_of(tensor.sizes, tensor.strides), tensor.dtype->bytes);
  if (sum(begin, size) > storage->size()) refuse_tensor();
  tensor.bytes = storage->substr(begin, size);
  return tensor;
}

}  // namespace acc
