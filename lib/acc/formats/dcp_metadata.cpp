// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/dcp_metadata.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/formats/file_name.hpp"
#include "acc/formats/pickle_reader.hpp"
#include "acc/formats/pickle_writer.hpp"
#include "acc/formats/refusal.hpp"

namespace acc {
namespace {

using Type = PickleValue::Type;
using Sizes = std::vector<std::int64_t>;

constexpr std::string_view kMetadataModule = "torch.distributed.checkpoint.metadata";
constexpr std::string_view kStorageModule = "torch.distributed.checkpoint.filesystem";
constexpr std::uint64_t kMaxElements = 1ULL << 60U;
// Of a checkpoint of a thousand processes.
constexpr std::size_t kMaxMetadataBytes = 1U << 30U;

// The files of a checkpoint are in one folder.
bool is_in_folder(const std::string& name) {
  return is_below_folder(name) && name.find('/') == std::string::npos;
}

// torch.distributed.checkpoint.metadata.Metadata, from its pickle.
class MetadataReader {
 public:
  DcpMetadata read(std::string_view pickle) {
    const PickleValue& metadata = reader_.read(pickle);
    read_storages(member(metadata, "storage_data"));
    read_paths(member(metadata, "planner_data"));
    DcpMetadata result;
    for (const auto& [key, item] : dict(member(metadata, "state_dict_metadata"))) {
      const std::string& name = text(*key);
      if (item->text.ends_with(".TensorStorageMetadata")) {
        result.tensors[name] = read_tensor(name, *item);
      } else if (item->text.ends_with(".BytesStorageMetadata")) {
        result.objects[name] = {.path = path_of(name), .storage = storage_of(name, {})};
      } else {
        refuse(fmt::format("'{}' is neither a tensor nor bytes", name));
      }
    }
    return result;
  }

 private:
  static const PickleValue* find(const PickleValue& object, std::string_view name) {
    if (object.state == nullptr) return nullptr;
    for (const auto& [key, value] : object.state->pairs) {
      if (key->type == Type::text && key->text == name) return value;
    }
    return nullptr;
  }

  static const PickleValue& member(const PickleValue& object, std::string_view name) {
    if (const PickleValue* found = find(object, name)) return *found;
    refuse(fmt::format("it has no {}", name));
  }

  static const PickleValue::Pairs& dict(const PickleValue& value) {
    if (value.type != Type::dict) refuse("an entry is not a dict");
    return value.pairs;
  }

  static const std::string& text(const PickleValue& value) {
    if (value.type != Type::text) refuse("a name is not a string");
    return value.text;
  }

  static std::uint64_t number(const PickleValue& value) {
    if (value.type != Type::integer || value.integer < 0) refuse("an entry is not a number");
    return static_cast<std::uint64_t>(value.integer);
  }

  // torch.Size, made from a tuple.
  static Sizes sizes(const PickleValue& value) {
    if (value.arguments == nullptr || value.arguments->items.size() != 1) refuse("a size is invalid");
    Sizes result;
    for (const PickleValue* item : value.arguments->items.front()->items)
      result.push_back(static_cast<std::int64_t>(number(*item)));
    return result;
  }

  void read_storages(const PickleValue& storage) {
    for (const auto& [index, info] : dict(storage)) {
      // Tensors alone have offsets.
      const PickleValue* offset = find(*index, "offset");
      const DcpStorageInfo location{.file = text(member(*info, "relative_path")),
                                    .begin = number(member(*info, "offset")),
                                    .length = number(member(*info, "length"))};
      if (!is_in_folder(location.file)) refuse("it names a file elsewhere");
      const PickleValue* transforms = find(*info, "transform_descriptors");
      if (transforms != nullptr && transforms->type != Type::none)
        refuse("it holds compressed values, which acc cannot read");
      const Sizes at = offset == nullptr || offset->type == Type::none ? Sizes() : sizes(*offset);
      storages_[{text(member(*index, "fqn")), at}] = location;
    }
  }

  void read_paths(const PickleValue& planner) {
    if (planner.type != Type::dict) return;
    for (const auto& [name, path] : planner.pairs) {
      DcpPath& keys = paths_[text(*name)];
      for (const PickleValue* key : path->items) {
        if (key->type == Type::integer) {
          keys.emplace_back(key->integer);
        } else {
          keys.emplace_back(text(*key));
        }
      }
    }
  }

  DcpPath path_of(const std::string& name) const {
    const auto path = paths_.find(name);
    return path == paths_.end() ? DcpPath{name} : path->second;
  }

  const DcpStorageInfo& storage_of(const std::string& name, const Sizes& offsets) const {
    const auto storage = storages_.find({name, offsets});
    if (storage == storages_.end()) refuse(fmt::format("a part of '{}' is in no file", name));
    return storage->second;
  }

  DcpTensor read_tensor(const std::string& name, const PickleValue& from) const {
    DcpTensor tensor{.path = path_of(name), .shape = sizes(member(from, "size"))};
    const PickleValue& properties = member(from, "properties");
    if (properties.state == nullptr || properties.state->items.empty()) refuse("a tensor has no type");
    const std::string& type = properties.state->items.front()->text;
    const auto* dtype = std::ranges::find(
        kTorchDtypes, type, [](const TorchDtype& row) { return fmt::format("torch.{}", row.name); });
    if (dtype == kTorchDtypes.end())
      refuse(fmt::format("'{}' is of type {}, which acc does not support", name, type));
    tensor.dtype = dtype;
    for (const PickleValue* chunk : member(from, "chunks").items) {
      const DcpBox box{.offsets = sizes(member(*chunk, "offsets")), .sizes = sizes(member(*chunk, "sizes"))};
      tensor.chunks.push_back({.box = box, .storage = storage_of(name, box.offsets)});
    }
    check(name, tensor);
    return tensor;
  }

  // Every number is checked before any is used.
  static void check(const std::string& name, const DcpTensor& tensor) {
    dcp_elements(tensor.shape);
    for (const auto& [box, storage] : tensor.chunks) {
      bool fits = box.offsets.size() == tensor.shape.size() && box.sizes.size() == tensor.shape.size();
      for (std::size_t i = 0; fits && i < box.sizes.size(); ++i)
        fits = box.offsets[i] <= tensor.shape[i] && box.sizes[i] <= tensor.shape[i] - box.offsets[i];
      if (!fits) refuse(fmt::format("a part of '{}' lies outside of it", name));
      if (dcp_elements(box.sizes) > storage.length / tensor.dtype->bytes)
        refuse(fmt::format("a part of '{}' is larger than its place", name));
    }
  }

  PickleReader reader_ = PickleReader::of_any_class();
  std::map<std::pair<std::string, Sizes>, DcpStorageInfo> storages_ = {};
  std::map<std::string, DcpPath> paths_ = {};
};

// Metadata as Python's dataclasses pickle themselves. Classes and names are written once, then referred to.
class MetadataWriter {
 public:
  std::string write(const DcpMetadata& metadata) {
    begin_object(kMetadataModule, "Metadata");
    put("state_dict_metadata");
    put_items(metadata);
    put("planner_data");
    put_paths(metadata);
    put("storage_data");
    put_storages(metadata);
    put("storage_meta");
    out_.none();
    put("version");
    put("1.0.0");
    end_object();
    return out_.finish();
  }

 private:
  void put(std::string_view text) {
    const auto known = memo_.find(text);
    if (known != memo_.end()) return out_.get_memo(known->second);
    out_.text(text);
    memo_.emplace(text, out_.memoize());
  }

  void put_class(std::string_view module, std::string_view name) {
    const std::string key = fmt::format("\n{}.{}", module, name);
    const auto known = memo_.find(key);
    if (known != memo_.end()) return out_.get_memo(known->second);
    out_.class_name(module, name);
    memo_.emplace(key, out_.memoize());
  }

  void begin_object(std::string_view module, std::string_view name) {
    put_class(module, name);
    out_.empty_tuple();
    out_.new_object();
    begin_dict();
  }
  void end_object() {
    out_.fill_dict();
    out_.build();
  }

  void begin_dict() {
    out_.empty_dict();
    out_.mark();
  }

  void put_size(const Sizes& sizes) {
    put_class("torch", "Size");
    out_.mark();
    for (const std::int64_t size : sizes) out_.integer(size);
    out_.tuple_of_marked();
    out_.tuple(1);
    out_.call();
  }

  void put_items(const DcpMetadata& metadata) {
    begin_dict();
    for (const auto& [name, tensor] : metadata.tensors) {
      put(name);
      put_tensor(tensor);
    }
    for (const auto& [name, object] : metadata.objects) {
      put(name);
      put_class(kMetadataModule, "BytesStorageMetadata");
      out_.empty_tuple();
      out_.new_object();
    }
    out_.fill_dict();
  }

  void put_tensor(const DcpTensor& tensor) {
    begin_object(kMetadataModule, "TensorStorageMetadata");
    put("properties");
    put_properties(*tensor.dtype);
    put("size");
    put_size(tensor.shape);
    put("chunks");
    out_.empty_list();
    out_.mark();
    for (const DcpChunk& chunk : tensor.chunks) {
      begin_object(kMetadataModule, "ChunkStorageMetadata");
      put("offsets");
      put_size(chunk.box.offsets);
      put("sizes");
      put_size(chunk.box.sizes);
      end_object();
    }
    out_.fill_list();
    end_object();
  }

  // TensorProperties.__getstate__: dtype, layout, requires_grad, memory format, pin_memory.
  void put_properties(const TorchDtype& dtype) {
    put_class(kMetadataModule, "TensorProperties");
    out_.empty_tuple();
    out_.new_object();
    out_.mark();
    put_class("torch", dtype.name);
    put_class("torch.serialization", "_get_layout");
    put("torch.strided");
    out_.tuple(1);
    out_.call();
    out_.boolean(false);
    put_class(kMetadataModule, "_MEM_FORMAT_ENCODING");
    out_.integer(0);
    out_.tuple(1);
    out_.call();
    out_.boolean(false);
    out_.tuple_of_marked();
    out_.build();
  }

  void put_paths(const DcpMetadata& metadata) {
    begin_dict();
    for (const auto& [name, tensor] : metadata.tensors) put_path(name, tensor.path);
    for (const auto& [name, object] : metadata.objects) put_path(name, object.path);
    out_.fill_dict();
  }

  void put_path(const std::string& name, const DcpPath& path) {
    put(name);
    out_.mark();
    for (const auto& key : path) {
      if (const auto* index = std::get_if<std::int64_t>(&key)) {
        out_.integer(*index);
      } else {
        put(std::get<std::string>(key));
      }
    }
    out_.tuple_of_marked();
  }

  void put_storages(const DcpMetadata& metadata) {
    begin_dict();
    for (const auto& [name, tensor] : metadata.tensors) {
      for (std::size_t i = 0; i < tensor.chunks.size(); ++i)
        put_storage(name, {{tensor.chunks[i].box.offsets, i}}, tensor.chunks[i].storage);
    }
    for (const auto& [name, object] : metadata.objects) put_storage(name, {}, object.storage);
    out_.fill_dict();
  }

  // `chunk` is the offsets and the index of a chunk.
  void put_storage(const std::string& name, const std::optional<std::pair<Sizes, std::size_t>>& chunk,
                   const DcpStorageInfo& storage) {
    begin_object(kMetadataModule, "MetadataIndex");
    put("fqn");
    put(name);
    put("index");
    chunk ? out_.integer(static_cast<std::int64_t>(chunk->second)) : out_.none();
    if (chunk) {
      put("offset");
      put_size(chunk->first);
    }
    end_object();
    begin_object(kStorageModule, "_StorageInfo");
    put("relative_path");
    put(storage.file);
    put("offset");
    out_.integer(static_cast<std::int64_t>(storage.begin));
    put("length");
    out_.integer(static_cast<std::int64_t>(storage.length));
    end_object();
  }

  PickleWriter out_ = PickleWriter();
  std::map<std::string, std::uint32_t, std::less<>> memo_ = {};
};

// Does not look for parts that overlap: nothing bad comes from it but other values.
void require_whole(const std::string& name, const DcpTensor& tensor) {
  std::uint64_t covered = 0;
  for (const DcpChunk& chunk : tensor.chunks) covered += dcp_elements(chunk.box.sizes);
  if (covered != dcp_elements(tensor.shape)) refuse(fmt::format("the parts of '{}' are not the whole", name));
}

}  // namespace

std::string dcp_name(const DcpPath& path) {
  std::string name;
  for (const auto& key : path) {
    if (!name.empty()) name += '.';
    if (const auto* index = std::get_if<std::int64_t>(&key)) {
      name += std::to_string(*index);
    } else {
      name += std::get<std::string>(key);
    }
  }
  return name;
}

std::uint64_t dcp_elements(const std::vector<std::int64_t>& sizes) {
  std::uint64_t result = 1;
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(result, static_cast<std::uint64_t>(size), &result) || result > kMaxElements)
      refuse("a tensor has an impossible size");
  }
  return result;
}

DcpMetadata parse_dcp_metadata(std::string_view pickle) {
  try {
    return MetadataReader().read(pickle);
  } catch (const Error& error) {
    refuse("cannot be read as metadata of torch.distributed.checkpoint: " + error.problems().front().what);
  }
}

DcpMetadata read_dcp_metadata(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kDcpMetadataFile;
  const std::string pickle = read_file(file, kMaxMetadataBytes);
  try {
    DcpMetadata metadata = parse_dcp_metadata(pickle);
    for (const auto& [name, tensor] : metadata.tensors) require_whole(name, tensor);
    return metadata;
  } catch (const Error& error) {
    throw Error({.kind = error.kind(), .what = error.problems().front().what, .where = file.string()});
  }
}

std::string format_dcp_metadata(const DcpMetadata& metadata) {
  return MetadataWriter().write(metadata);
}

}  // namespace acc
