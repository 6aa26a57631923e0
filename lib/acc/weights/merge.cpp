// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/merge.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "acc/base/descriptor.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

struct Item {
  const TensorInfo* tensor = nullptr;
  MergedFile::Source source = {};
};

std::vector<Item> all_tensors(const std::vector<CheckpointFile>& files) {
  std::vector<Item> items;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const TensorInfo& tensor : files[i].header.tensors)
      items.push_back({&tensor, {i, files[i].header.data_begin + tensor.begin}});
  }
  std::ranges::sort(items, {}, [](const Item& item) -> const std::string& { return item.tensor->name; });
  return items;
}

void add(MergedFile& file, const Item& item) {
  TensorInfo tensor = *item.tensor;
  const std::uint64_t size = tensor.end - tensor.begin;
  tensor.begin = file.header.tensors.empty() ? 0 : file.header.tensors.back().end;
  tensor.end = tensor.begin + size;
  file.header.tensors.push_back(std::move(tensor));
  file.sources.push_back(item.source);
}

std::uint64_t data_bytes(const MergedFile& file) {
  return file.header.tensors.empty() ? 0 : file.header.tensors.back().end;
}

[[noreturn]] void fail(const fs::path& file, const std::string& what) {
  throw Error({.kind = ErrorKind::system,
               .what = fmt::format("cannot be {}: {}", what, std::strerror(errno)),
               .where = file.string()});
}

Descriptor open_to_read(const fs::path& file) {
  Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in) fail(file, "read");
  return in;
}

void write_all(const Descriptor& out, std::string_view bytes, const fs::path& file) {
  if (!acc::write_all(out.get(), bytes)) fail(file, "written");
}

void copy_bytes(const Descriptor& in, std::uint64_t offset, std::uint64_t size, const fs::path& from,
                const Descriptor& out, const fs::path& to) {
  constexpr std::size_t kPiece = 1U << 20U;
  std::string buffer(kPiece, '\0');
  while (size > 0) {
    const ssize_t n =
        ::pread(in.get(), buffer.data(), std::min<std::uint64_t>(kPiece, size), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;
    if (n <= 0) fail(from, "read");
    write_all(out, std::string_view(buffer.data(), static_cast<std::size_t>(n)), to);
    offset += static_cast<std::uint64_t>(n);
    size -= static_cast<std::uint64_t>(n);
  }
}

// Under another name until it is whole and on the disk.
class NewFile {
 public:
  explicit NewFile(fs::path file) : file_(std::move(file)), part_(file_.string() + ".part") {
    out_ = Descriptor(::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!out_) fail(part_, "written");
  }
  ~NewFile() {
    if (!part_.empty()) ::unlink(part_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const Descriptor& out() const { return out_; }
  const fs::path& path() const { return part_; }

  void finish() {
    if (::fsync(out_.get()) != 0) fail(part_, "written");
    if (::rename(part_.c_str(), file_.c_str()) != 0) fail(file_, "written");
    part_.clear();
  }

 private:
  fs::path file_;
  fs::path part_;
  Descriptor out_ = {};
};

void write_one(const std::vector<CheckpointFile>& from, const MergedFile& file, const fs::path& path) {
  NewFile part(path);
  write_all(part.out(), format_safetensors_header(file.header), part.path());
  Descriptor in;
  std::size_t opened = from.size();
  for (std::size_t i = 0; i < file.sources.size(); ++i) {
    const MergedFile::Source& source = file.sources[i];
    const TensorInfo& tensor = file.header.tensors[i];
    if (source.file != opened) in = open_to_read(from[source.file].path);
    opened = source.file;
    copy_bytes(in, source.offset, tensor.end - tensor.begin, from[source.file].path, part.out(), part.path());
  }
  part.finish();
}

}  // namespace

std::vector<MergedFile> plan_merge(const std::vector<CheckpointFile>& files, std::uint64_t most) {
  std::vector<MergedFile> merged(1);
  for (const Item& item : all_tensors(files)) {
    const std::uint64_t size = item.tensor->end - item.tensor->begin;
    if (!merged.back().sources.empty() && data_bytes(merged.back()) + size > most) merged.emplace_back();
    add(merged.back(), item);
  }
  for (std::size_t i = 0; i < merged.size(); ++i) {
    merged[i].name = merged.size() == 1
                         ? "model.safetensors"
                         : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, merged.size());
    merged[i].header.metadata = {{"format", "pt"}};
  }
  return merged;
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

void write_merged(const std::vector<CheckpointFile>& from, const std::vector<MergedFile>& files,
                  const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error(
        {.kind = ErrorKind::system, .what = "cannot be made: " + error.message(), .where = folder.string()});
  }
  for (const MergedFile& file : files) write_one(from, file, folder / file.name);
  if (const std::string index = merged_index(files); !index.empty())
    replace_file(folder / "model.safetensors.index.json", index);
}

std::uint64_t parse_size(const std::string& text, const std::string& where) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr std::array kUnits = {Unit{"KB", 1e3}, Unit{"MB", 1e6}, Unit{"GB", 1e9}, Unit{"TB", 1e12}};
  const std::string upper = to_upper(trim(text));
  for (const Unit& unit : kUnits) {
    if (!upper.ends_with(unit.name)) continue;
    const auto number = parse_number(upper.substr(0, upper.size() - unit.name.size()));
    if (number && *number > 0 && *number < 1e6)
      return static_cast<std::uint64_t>(std::llround(*number * unit.bytes));
  }
  throw Error({.what = fmt::format("'{}' is no size", text), .where = where, .hint = "as in 5GB or 200MB"});
}

}  // namespace acc
