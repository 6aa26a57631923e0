// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/merge.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/formats/weights_replacement.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

std::uint64_t size_of(const MergeItem& item) {
  return item.tensor.end - item.tensor.begin;
}

MergedFile file_of(std::span<MergeItem> items) {
  // The order of Python's writer: the largest elements first, so that each tensor is aligned.
  std::ranges::stable_sort(items, std::greater(),
                           [](const MergeItem& item) { return bits_of(item.tensor.dtype); });
  MergedFile file;
  std::uint64_t end = 0;
  for (MergeItem& item : items) {
    const std::uint64_t begin = std::exchange(end, end + size_of(item));
    item.tensor.begin = begin;
    item.tensor.end = end;
    file.header.tensors.push_back(std::move(item.tensor));
    file.sources.push_back(item.source);
  }
  file.header.metadata = {{"format", "pt"}};
  return file;
}

std::uint64_t data_bytes(const MergedFile& file) {
  return file.header.tensors.empty() ? 0 : file.header.tensors.back().end;
}

Descriptor open_to_read(const fs::path& file) {
  Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in) throw_errno(file, "cannot be read", errno);
  return in;
}

void copy_bytes(const Descriptor& in, std::uint64_t offset, std::uint64_t size, const fs::path& from,
                const WriteBytes& write) {
  constexpr std::size_t kPiece = 1U << 20U;
  std::string buffer(kPiece, '\0');
  while (size > 0) {
    const ssize_t n =
        ::pread(in.get(), buffer.data(), std::min<std::uint64_t>(kPiece, size), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;
    if (n <= 0) throw_errno(from, "cannot be read", errno);
    write(std::string_view(buffer.data(), static_cast<std::size_t>(n)));
    offset += static_cast<std::uint64_t>(n);
    size -= static_cast<std::uint64_t>(n);
  }
}

void write_one(const MergedFile& file, const fs::path& path, const ReadTensor& read,
               const std::function<void()>& before_write) {
  const Descriptor out(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!out) throw_errno(path, "cannot be written", errno);
  const WriteBytes write = [&](std::string_view bytes) {
    before_write();
    if (!write_all(out.get(), bytes)) throw_errno(path, "cannot be written", errno);
  };
  write(format_safetensors_header(file.header));
  for (std::size_t i = 0; i < file.sources.size(); ++i) read(file.sources[i], file.header.tensors[i], write);
  if (::fsync(out.get()) != 0) throw_errno(path, "cannot be written", errno);
}

}  // namespace

std::vector<MergedFile> lay_out(std::vector<MergeItem> items, std::uint64_t max_bytes) {
  std::ranges::sort(items, {}, [](const MergeItem& item) -> const std::string& { return item.tensor.name; });
  std::vector<MergedFile> merged;
  std::size_t first = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > first && bytes + size_of(items[i]) > max_bytes) {
      merged.push_back(file_of(std::span(items).subspan(first, i - first)));
      first = i;
      bytes = 0;
    }
    bytes += size_of(items[i]);
  }
  merged.push_back(file_of(std::span(items).subspan(first)));
  for (std::size_t i = 0; i < merged.size(); ++i) {
    merged[i].name = merged.size() == 1
                         ? std::string(kWeightsFile)
                         : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, merged.size());
  }
  return merged;
}

std::vector<MergedFile> plan_merge(const std::vector<CheckpointFile>& files, std::uint64_t max_bytes) {
  std::vector<MergeItem> items;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const TensorInfo& tensor : files[i].header.tensors)
      items.push_back({tensor, {i, files[i].header.data_begin + tensor.begin}});
  }
  return lay_out(std::move(items), max_bytes);
}

std::string merged_index(const std::vector<MergedFile>& files) {
  if (files.size() < 2) return "";
  std::uint64_t total = 0;
  nlohmann::json map = nlohmann::json::object();
  for (const MergedFile& file : files) {
    total += data_bytes(file);
    for (const TensorInfo& tensor : file.header.tensors) map[tensor.name] = file.name;
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  return index.dump(2) + "\n";
}

void write_files(const std::vector<MergedFile>& files, const fs::path& folder, const ReadTensor& read,
                 const ReplacementCheck& source, const std::function<void()>& before_write) {
  WeightsReplacement weights(folder);
  for (const MergedFile& file : files) write_one(file, weights.temporary() / file.name, read, before_write);
  if (const std::string index = merged_index(files); !index.empty())
    replace_file(weights.temporary() / kWeightsIndex, index);
  if (source.replaced())
    throw Error({.kind = ErrorKind::system,
                 .what = "not written: what was merged has changed meanwhile",
                 .where = folder.string()});
  weights.publish();
}

void write_merged(const std::vector<CheckpointFile>& from, const std::vector<MergedFile>& files,
                  const fs::path& folder, const ReplacementCheck& source,
                  const std::function<void()>& before_write) {
  Descriptor in;
  std::size_t opened = from.size();
  const ReadTensor read = [&](const MergedFile::Source& origin, const TensorInfo& tensor,
                              const WriteBytes& write) {
    const fs::path& path = from[origin.file].path;
    if (origin.file != opened) in = open_to_read(path);
    opened = origin.file;
    copy_bytes(in, origin.offset, tensor.end - tensor.begin, path, write);
  };
  write_files(files, folder, read, source, before_write);
}

}  // namespace acc::launcher
