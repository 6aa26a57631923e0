// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/dcp_checkpoint.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <span>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/printable.hpp"
#include "acc/base/replacement.hpp"
#include "acc/base/text.hpp"
#include "acc/formats/dcp_metadata.hpp"
#include "acc/formats/dcp_ranges.hpp"
#include "acc/runtime/checkpoint/folder_replacement.hpp"
#include "acc/runtime/checkpoint/pt_archive.hpp"
#include "acc/runtime/checkpoint/safetensors.hpp"
#include "acc/runtime/checkpoint/torch_types.hpp"
#include "acc/runtime/comm/operations.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kShardEnding = ".distcp";
// As in files of torch.save: tensors that are mapped into memory are then aligned.
constexpr std::uint64_t kAlignment = 64;
constexpr std::array<char, kAlignment> kZeros = {};

std::string shard_file(int process) {
  return fmt::format("__{}_0{}", process, kShardEnding);
}

bool is_sharded_file(const std::string& name) {
  return name == kDcpMetadataFile || name.ends_with(kShardEnding);
}

DcpPath path_of(const TensorRange& range) {
  return {range.path.begin(), range.path.end()};
}

std::uint64_t begin_of(const TensorRange& range) {
  return static_cast<std::uint64_t>(range.begin);
}

std::uint64_t end_of(const TensorRange& range) {
  return static_cast<std::uint64_t>(range.begin + range.elements.numel());
}

const TorchDtype& dtype_of(const TensorRange& range) {
  const auto match = std::ranges::find(detail::kScalarTypes, range.elements.scalar_type());
  if (match != detail::kScalarTypes.end())
    return kTorchDtypes.at(static_cast<std::size_t>(match - detail::kScalarTypes.begin()));
  throw Error({.what = fmt::format("{} cannot be saved", c10::toString(range.elements.scalar_type())),
               .where = fmt::format("tensor '{}'", dcp_name(path_of(range)))});
}

// Whether Python's torch.distributed.checkpoint saves the elements of a list each by itself.
bool is_nested(const PtValue& value) {
  if (value.get_if<PtDict>() != nullptr || value.get_if<at::Tensor>() != nullptr) return true;
  const auto* list = value.get_if<PtList>();
  return list != nullptr && std::ranges::any_of(*list, is_nested);
}

[[noreturn]] void refuse_twice(const std::string& name) {
  throw Error({.what = "is the name of two values, of which a checkpoint can hold one",
               .where = fmt::format("'{}'", name),
               .hint = "give one of them another key"});
}

// What processes disagree about is an error of the program.
void require_same(const std::string& name, const DcpTensor& one, const DcpTensor& other) {
  if (one.path != other.path) refuse_twice(name);
  if (one.shape == other.shape && one.dtype == other.dtype) return;
  throw Error(
      {.what = "has different shapes or types in its ranges", .where = fmt::format("tensor '{}'", name)});
}

// The values of one process, and where its file has them.
class ShardFile {
 public:
  explicit ShardFile(int process) : name_(shard_file(process)) {}

  void add(const DcpPath& path, const TensorRange& range) {
    detail::require_inside(range);
    const std::string name = dcp_name(path);
    const DcpTensor own{.path = path, .dtype = &dtype_of(range), .shape = range.shape};
    DcpTensor& tensor = metadata_.tensors.try_emplace(name, own).first->second;
    require_same(name, tensor, own);
    const at::Tensor elements =
        range.elements.detach().cpu().contiguous().resolve_conj().resolve_neg().flatten();
    for (const auto& [box, begin] : boxes_of_range(range.shape, begin_of(range), end_of(range))) {
      const auto first = static_cast<std::int64_t>(begin) - range.begin;
      const auto count = static_cast<std::int64_t>(dcp_elements(box.sizes));
      tensor.chunks.push_back(
          {.box = box, .storage = append(elements.narrow(0, first, count).view(box.sizes), name)});
    }
  }

  // The leaves of nested dicts and lists.
  void add(const DcpPath& path, const PtValue& value) {
    const std::string name = dcp_name(path);
    if (const auto* dict = value.get_if<PtDict>()) {
      for (const PtEntry& entry : *dict) {
        const auto* key = entry.key.get_if<std::string>();
        if (key == nullptr)
          throw Error({.what = "has a key that is not a text", .where = fmt::format("'{}'", name)});
        if (!is_utf8(*key))
          throw Error({.what = fmt::format("has a key that is not UTF-8: '{}'", printable(*key)),
                       .where = fmt::format("'{}'", name)});
        add(longer(path, *key), entry.value);
      }
    } else if (const auto* tensor = value.get_if<at::Tensor>()) {
      add(path, whole_range({}, *tensor));
    } else if (is_nested(value)) {
      const auto& list = *value.get_if<PtList>();
      for (std::size_t i = 0; i < list.size(); ++i) add(longer(path, static_cast<std::int64_t>(i)), list[i]);
    } else {
      if (metadata_.objects.contains(name)) refuse_twice(name);
      metadata_.objects[name] = {.path = path, .storage = append(value, name)};
    }
  }

  const DcpMetadata& metadata() const { return metadata_; }

  void write(const fs::path& folder) const {
    if (!parts_.empty()) replace_file(folder / name_, parts_);
  }

 private:
  static DcpPath longer(DcpPath path, DcpPath::value_type key) {
    path.push_back(std::move(key));
    return path;
  }

  DcpStorageInfo append(const PtValue& value, const std::string& where) {
    const detail::PtArchive& archive = archives_.emplace_back(value, where);
    if (size_ % kAlignment != 0) append_bytes({kZeros.data(), kAlignment - size_ % kAlignment});
    const DcpStorageInfo storage{.file = name_, .begin = size_, .length = archive.size()};
    for (const std::string_view part : archive.parts()) append_bytes(part);
    return storage;
  }
  void append_bytes(std::string_view bytes) {
    parts_.push_back(bytes);
    size_ += bytes.size();
  }

  std::string name_;
  DcpMetadata metadata_ = {};
  std::deque<detail::PtArchive> archives_ = {};  // at stable addresses
  std::vector<std::string_view> parts_ = {};
  std::uint64_t size_ = 0;
};

// Each box is contiguous, as boxes_of_range makes them.
bool is_covered_once(const DcpTensor& tensor) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const DcpChunk& chunk : tensor.chunks)
    ranges.emplace_back(dcp_index(tensor.shape, chunk.box.offsets), dcp_elements(chunk.box.sizes));
  std::ranges::sort(ranges);
  std::uint64_t next = 0;
  for (const auto& [begin, count] : ranges) {
    if (begin != next) return false;
    next += count;
  }
  return next == dcp_elements(tensor.shape);
}

DcpMetadata metadata_of_process(const std::string& pickle, int process) {
  try {
    return parse_dcp_metadata(pickle);
  } catch (const Error& error) {
    throw Error({.kind = error.kind(),
                 .what = error.problems().front().what,
                 .where = fmt::format("process {}", process)});
  }
}

DcpMetadata merge(const std::vector<std::string>& pickles) {
  DcpMetadata merged;
  int process = 0;
  for (const std::string& pickle : pickles) {
    DcpMetadata part = metadata_of_process(pickle, process++);
    merged.objects.merge(part.objects);
    for (auto& [name, tensor] : part.tensors) {
      const auto [entry, added] = merged.tensors.try_emplace(name, tensor);
      if (added) continue;
      require_same(name, entry->second, tensor);
      std::ranges::move(tensor.chunks, std::back_inserter(entry->second.chunks));
    }
  }
  for (const auto& [name, tensor] : merged.tensors) {
    if (merged.objects.contains(name)) refuse_twice(name);
    if (is_covered_once(tensor)) continue;
    throw Error({.what = "the ranges of all processes do not cover it once",
                 .where = fmt::format("tensor '{}'", name)});
  }
  return merged;
}

// A file that another machine wrote to a disk of its own would be missing.
void require_files(const fs::path& folder, const DcpMetadata& metadata) {
  for (const auto& [name, tensor] : metadata.tensors) {
    for (const DcpChunk& chunk : tensor.chunks) {
      if (fs::exists(folder / chunk.storage.file)) continue;
      throw Error({.kind = ErrorKind::system,
                   .what = fmt::format("{} is missing, which another process wrote", chunk.storage.file),
                   .where = folder.string(),
                   .hint = "save to a folder that all machines share"});
    }
  }
}

// Inserts a value at its path in nested dicts and lists, which grow.
void insert(PtValue& node, std::span<const DcpPath::value_type> path, PtValue value) {
  if (path.empty()) {
    node = std::move(value);
  } else if (const auto* index = std::get_if<std::int64_t>(&path.front())) {
    if (node.get_if<PtList>() == nullptr) node = PtList();
    auto& list = std::get<PtList>(node.content);
    const auto position = static_cast<std::size_t>(*index);
    if (position >= list.size()) list.resize(position + 1);
    insert(list[position], path.subspan(1), std::move(value));
  } else {
    if (node.get_if<PtDict>() == nullptr) node = PtDict();
    auto& dict = std::get<PtDict>(node.content);
    const auto& key = std::get<std::string>(path.front());
    const auto match = std::ranges::find_if(
        dict, [&](const PtEntry& entry) { return *entry.key.get_if<std::string>() == key; });
    PtEntry& entry = match != dict.end() ? *match : dict.emplace_back(PtEntry{.key = key});
    insert(entry.value, path.subspan(1), std::move(value));
  }
}

// No list has more values than the checkpoint, so damaged metadata cannot make a list of any size.
bool has_possible_indices(const DcpPath& path, std::size_t values) {
  return std::ranges::all_of(path, [&](const DcpPath::value_type& key) {
    const auto* index = std::get_if<std::int64_t>(&key);
    return index == nullptr || (*index >= 0 && static_cast<std::size_t>(*index) < values);
  });
}

void load_range(const fs::path& folder, const DcpTensor& tensor, const TensorRange& range) {
  const at::ScalarType type = detail::scalar_type_of(*tensor.dtype);
  const bool in_place =
      range.elements.is_cpu() && range.elements.is_contiguous() && range.elements.scalar_type() == type;
  const at::Tensor read =
      in_place ? range.elements : at::empty(range.elements.sizes(), at::TensorOptions(type));
  read_dcp_range(folder, tensor, begin_of(range), end_of(range), static_cast<char*>(read.mutable_data_ptr()));
  if (!in_place) range.elements.copy_(read);
}

}  // namespace

TensorRange whole_range(std::vector<std::string> path, const at::Tensor& tensor) {
  return {.path = std::move(path), .shape = tensor.sizes().vec(), .elements = tensor.detach()};
}

void save_sharded(const fs::path& folder, const ShardedState& state, const SavingProcesses& processes) {
  detail::FolderReplacement replacement(folder, is_sharded_file);
  detail::begin_together(replacement, processes);
  detail::write_sharded_files(replacement, {}, state, processes);
  detail::publish_together(replacement, processes);
}

namespace {

void load_sharded_once(const fs::path& folder, const std::vector<TensorRange>& ranges) {
  const fs::path complete = detail::complete_folder(folder);
  const DcpMetadata metadata = read_dcp_metadata(complete);
  std::vector<Problem> problems;
  for (const TensorRange& range : ranges) {
    detail::require_inside(range);
    const std::string name = dcp_name(path_of(range));
    const auto saved = metadata.tensors.find(name);
    if (saved == metadata.tensors.end()) {
      problems.push_back({fmt::format("has no tensor '{}'", name), folder.string(), ""});
    } else if (saved->second.shape != range.shape) {
      problems.push_back({fmt::format("tensor '{}' is [{}], not [{}]", name,
                                      fmt::join(saved->second.shape, ", "), fmt::join(range.shape, ", ")),
                          folder.string(), ""});
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::config, std::move(problems));
  for (const TensorRange& range : ranges)
    load_range(complete, metadata.tensors.at(dcp_name(path_of(range))), range);
}

PtDict read_sharded_objects_once(const fs::path& folder) {
  const fs::path complete = detail::complete_folder(folder);
  PtValue objects = PtDict();
  const DcpMetadata metadata = read_dcp_metadata(complete);
  for (const auto& [name, object] : metadata.objects) {
    if (!has_possible_indices(object.path, metadata.objects.size() + metadata.tensors.size())) {
      throw Error({.kind = ErrorKind::config,
                   .what = fmt::format("'{}' is in a longer list than the checkpoint has values", name),
                   .where = (complete / kDcpMetadataFile).string()});
    }
    const auto& [file, begin, length] = object.storage;
    insert(objects, object.path, detail::read_pt_archive(complete / file, begin, length));
  }
  return std::get<PtDict>(objects.content);
}

}  // namespace

void load_sharded(const fs::path& folder, const std::vector<TensorRange>& ranges) {
  const at::NoGradGuard no_grad;
  read_unreplaced({folder}, [&] {
    load_sharded_once(folder, ranges);
    return true;
  });
}

PtDict read_sharded_objects(const fs::path& folder) {
  return read_unreplaced({folder}, [&] { return read_sharded_objects_once(folder); });
}

namespace detail {

void require_inside(const TensorRange& range) {
  const std::uint64_t elements = dcp_elements(range.shape);
  if (end_of(range) <= elements) return;
  throw Error({.what = fmt::format("a range ends at element {} of {}", end_of(range), elements),
               .where = fmt::format("tensor '{}'", dcp_name(path_of(range)))});
}

void write_sharded_files(FolderReplacement& checkpoint, const fs::path& subfolder, const ShardedState& state,
                         const SavingProcesses& processes) {
  const at::NoGradGuard no_grad;
  const fs::path folder = checkpoint.temporary() / subfolder;
  ShardFile file(processes.index);
  fill_together(checkpoint, processes, [&] {
    for (const TensorRange& range : state.ranges) {
      require_utf8_name(dcp_name(path_of(range)));
      file.add(path_of(range), range);
    }
    if (processes.is_main()) file.add(DcpPath(), PtValue(state.objects));
    fs::create_directories(folder);
    file.write(folder);
  });
  fill_together(checkpoint, processes, [&] {
    const std::vector<std::string> pickles =
        gather_texts({format_dcp_metadata(file.metadata())}, processes.group.get());
    if (!processes.is_main()) return;
    const DcpMetadata metadata = merge(pickles);
    require_files(folder, metadata);
    replace_file(folder / kDcpMetadataFile, format_dcp_metadata(metadata));
  });
}

}  // namespace detail

}  // namespace acc
