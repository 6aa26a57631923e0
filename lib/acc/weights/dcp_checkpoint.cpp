// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/dcp_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/formats/pickle_reader.hpp"
#include "acc/formats/torch_file.hpp"
#include "acc/weights/refusal.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;
using Type = PickleValue::Type;
using Numbers = std::vector<std::int64_t>;

constexpr std::string_view kMetadata = ".metadata";

// The dtypes of torch with their names in safetensors.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kDtypes = {{
    {"float64", "F64"},
    {"float32", "F32"},
    {"float16", "F16"},
    {"bfloat16", "BF16"},
    {"int64", "I64"},
    {"int32", "I32"},
    {"int16", "I16"},
    {"int8", "I8"},
    {"uint64", "U64"},
    {"uint32", "U32"},
    {"uint16", "U16"},
    {"uint8", "U8"},
    {"bool", "BOOL"},
    {"complex64", "C64"},
    {"float8_e4m3fn", "F8_E4M3"},
    {"float8_e5m2", "F8_E5M2"},
}};

// The bytes of one element, by kDtypes.
std::string_view torch_name(std::string_view safetensors_name) {
  return std::ranges::find(kDtypes, safetensors_name, [](const auto& row) { return row.second; })->first;
}

struct Place {
  std::string file = {};
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
};

// torch.distributed.checkpoint.metadata.Metadata, from its pickle.
class MetadataReader {
 public:
  explicit MetadataReader(const fs::path& folder) : folder_(folder), file_(folder / kMetadata) {}

  std::vector<DcpTensor> read() {
    const std::string bytes = read_file(file_);
    const PickleValue& metadata = pickle(bytes);
    read_places(member(metadata, "storage_data"));
    read_paths(member(metadata, "planner_data"));
    std::vector<DcpTensor> tensors;
    for (const auto& [name, tensor] : dict(member(metadata, "state_dict_metadata")))
      tensors.push_back(read_tensor(text(*name), *tensor));
    std::ranges::sort(tensors, {}, [](const DcpTensor& tensor) { return tensor.info.name; });
    return tensors;
  }

 private:
  [[noreturn]] void refuse_metadata(const std::string& what) const {
    refuse(file_, "is not metadata of torch.distributed.checkpoint: " + what);
  }

  const PickleValue& pickle(const std::string& bytes) {
    try {
      return reader_.read(bytes);
    } catch (const Error& error) {
      refuse_metadata(error.what());
    }
  }

  const PickleValue& member(const PickleValue& object, std::string_view name) const {
    if (object.state != nullptr) {
      for (const auto& [key, value] : object.state->pairs) {
        if (key->type == Type::text && key->text == name) return *value;
      }
    }
    refuse_metadata(fmt::format("it has no {}", name));
  }

  const PickleValue::Pairs& dict(const PickleValue& value) const {
    if (value.type != Type::dict) refuse_metadata("an entry is not a dict");
    return value.pairs;
  }

  const std::string& text(const PickleValue& value) const {
    if (value.type != Type::text) refuse_metadata("a name is not a string");
    return value.text;
  }

  std::uint64_t number(const PickleValue& value) const {
    if (value.type != Type::integer || value.integer < 0) refuse_metadata("an entry is not a number");
    return static_cast<std::uint64_t>(value.integer);
  }

  // torch.Size, made from a tuple.
  Numbers numbers(const PickleValue& value) const {
    if (value.arguments == nullptr || value.arguments->items.size() != 1)
      refuse_metadata("a size is invalid");
    Numbers result;
    for (const PickleValue* item : value.arguments->items.front()->items)
      result.push_back(static_cast<std::int64_t>(number(*item)));
    return result;
  }

  void read_places(const PickleValue& storage) {
    for (const auto& [index, info] : dict(storage)) {
      const PickleValue& offset = member(*index, "offset");
      const Place place{.file = text(member(*info, "relative_path")),
                        .begin = number(member(*info, "offset")),
                        .length = number(member(*info, "length"))};
      // Must be a file name, not a path out of the folder.
      if (place.file.find('/') != std::string::npos) refuse_metadata("it names a file elsewhere");
      for (const auto& [key, value] : info->state->pairs) {
        if (key->text == "transform_descriptors" && value->type != Type::none)
          refuse(file_, "holds compressed tensors, which acc cannot read");
      }
      const Numbers at = offset.type == Type::none ? Numbers() : numbers(offset);
      places_[{text(member(*index, "fqn")), at}] = place;
    }
  }

  // The path of each tensor in the saved dict, which may be nested.
  void read_paths(const PickleValue& planner) {
    if (planner.type != Type::dict) return;
    std::set<std::string> tops;
    bool nested = true;
    for (const auto& [name, path] : planner.pairs) {
      std::vector<std::string>& parts = paths_[text(*name)];
      for (const PickleValue* part : path->items)
        parts.push_back(part->type == Type::integer ? std::to_string(part->integer) : part->text);
      if (!parts.empty()) tops.insert(parts.front());
      nested = nested && parts.size() > 1;
    }
    shared_level_ = nested && tops.size() == 1;
  }

  std::string name_of(const std::string& full) const {
    const auto path = paths_.find(full);
    if (path == paths_.end() || !shared_level_) return full;
    std::string name;
    for (std::size_t i = 1; i < path->second.size(); ++i) name += (i > 1 ? "." : "") + path->second[i];
    return name;
  }

  DcpTensor read_tensor(const std::string& full, const PickleValue& from) const {
    if (!from.text.ends_with(".TensorStorageMetadata")) {
      refuse(file_, fmt::format("holds '{}', which is not a tensor", full),
             "give the folder of the weights, as pytorch_model_fsdp_0");
    }
    DcpTensor tensor;
    tensor.info.name = name_of(full);
    tensor.info.shape = numbers(member(from, "size"));
    const PickleValue& properties = member(from, "properties");
    if (properties.state == nullptr || properties.state->items.empty())
      refuse_metadata("a tensor has no type");
    const std::string& type = properties.state->items.front()->text;
    const auto* dtype =
        std::ranges::find(kDtypes, type, [](const auto& row) { return fmt::format("torch.{}", row.first); });
    if (dtype == kDtypes.end())
      refuse(file_, fmt::format("'{}' is of type {}, which acc does not support", full, type));
    tensor.info.dtype = dtype->second;
    for (const PickleValue* chunk : member(from, "chunks").items)
      tensor.chunks.push_back(
          read_chunk(full, numbers(member(*chunk, "offsets")), numbers(member(*chunk, "sizes"))));
    tensor.info.end = bytes_of(tensor, full);
    return tensor;
  }

  DcpChunk read_chunk(const std::string& full, const Numbers& offsets, const Numbers& sizes) const {
    const auto place = places_.find({full, offsets});
    if (place == places_.end()) refuse_metadata(fmt::format("a part of '{}' is in no file", full));
    return {.offsets = offsets,
            .sizes = sizes,
            .file = folder_ / place->second.file,
            .begin = place->second.begin,
            .length = place->second.length};
  }

  // Every number is checked before any is used.
  std::uint64_t bytes_of(const DcpTensor& tensor, const std::string& full) const {
    const auto product = [&](const Numbers& sizes) {
      std::uint64_t result = 1;
      for (const std::int64_t size : sizes) {
        if (__builtin_mul_overflow(result, static_cast<std::uint64_t>(size), &result) ||
            result > (1ULL << 60U))
          refuse_metadata(fmt::format("'{}' has an impossible size", full));
      }
      return result;
    };
    const std::uint64_t elements = product(tensor.info.shape);
    std::uint64_t covered = 0;
    std::uint64_t stored = 0;
    for (const DcpChunk& chunk : tensor.chunks) {
      bool fits =
          chunk.offsets.size() == tensor.info.shape.size() && chunk.sizes.size() == tensor.info.shape.size();
      for (std::size_t i = 0; fits && i < chunk.sizes.size(); ++i)
        fits = chunk.offsets[i] <= tensor.info.shape[i] &&
               chunk.sizes[i] <= tensor.info.shape[i] - chunk.offsets[i];
      if (!fits) refuse_metadata(fmt::format("a part of '{}' lies outside of it", full));
      covered += product(chunk.sizes);
      stored += std::min(chunk.length, std::uint64_t{1} << 50U);
    }
    if (covered != elements) refuse_metadata(fmt::format("the parts of '{}' are not the whole", full));
    const auto* dtype = std::ranges::find(kTorchDtypes, torch_name(tensor.info.dtype), &TorchDtype::name);
    if (elements > stored / dtype->bytes) refuse_metadata(fmt::format("'{}' is larger than its files", full));
    return elements * dtype->bytes;
  }

  fs::path folder_;
  fs::path file_;
  PickleReader reader_ = PickleReader::of_any_class();
  std::map<std::pair<std::string, Numbers>, Place> places_ = {};
  std::map<std::string, std::vector<std::string>> paths_ = {};
  bool shared_level_ = false;
};

// Copies a part, with any strides, into the whole tensor, which is contiguous.
struct Paste {
  const StoredTensor& part;
  const Numbers& strides;

  void operator()(const char* from, char* to, std::size_t dim = 0) const {
    const std::size_t width = part.dtype->bytes;
    if (dim == part.sizes.size()) {
      std::memcpy(to, from, width);
      return;
    }
    const auto count = static_cast<std::size_t>(part.sizes[dim]);
    if (dim + 1 == part.sizes.size() && part.strides[dim] == 1) {
      std::memcpy(to, from, count * width);
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      (*this)(from + i * static_cast<std::size_t>(part.strides[dim]) * width,
              to + i * static_cast<std::size_t>(strides[dim]) * width, dim + 1);
    }
  }
};

Numbers strides_of(const Numbers& shape) {
  Numbers strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

void read_chunk(const DcpTensor& tensor, const DcpChunk& chunk, std::string& whole) {
  const MappedFile mapped(chunk.file);
  const std::string_view bytes(mapped.data(), mapped.size());
  if (chunk.begin > bytes.size() || chunk.length > bytes.size() - chunk.begin)
    refuse(chunk.file, "is truncated");
  try {
    const TorchFile file(bytes.substr(chunk.begin, chunk.length));
    const auto part = file.tensor(file.root());
    if (!part || part->sizes != chunk.sizes || part->dtype->name != torch_name(tensor.info.dtype))
      refuse({}, fmt::format("is damaged: a part of '{}' is another tensor", tensor.info.name));
    if (part->bytes.empty()) return;
    const Numbers strides = strides_of(tensor.info.shape);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < strides.size(); ++i)
      begin += static_cast<std::size_t>(chunk.offsets[i] * strides[i]);
    Paste{*part, strides}(part->bytes.data(), whole.data() + begin * part->dtype->bytes);
  } catch (const Error& error) {
    refuse(chunk.file, error.problems().front().what);
  }
}

}  // namespace

bool is_dcp_checkpoint(const fs::path& folder) {
  return fs::exists(folder / kMetadata);
}

std::vector<DcpTensor> read_dcp_checkpoint(const fs::path& folder) {
  return MetadataReader(folder).read();
}

std::string read_dcp_tensor(const DcpTensor& tensor) {
  std::string whole(tensor.info.end, '\0');
  for (const DcpChunk& chunk : tensor.chunks) read_chunk(tensor, chunk, whole);
  return whole;
}

}  // namespace acc::launcher
