// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/zip_writer.hpp"

#include <zlib.h>

#include <algorithm>
#include <initializer_list>

namespace acc::detail {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kLocalHeaderBytes = 30;
constexpr std::uint64_t kExtraHeadBytes = 4;
constexpr std::uint64_t kIn64Bits = 0xffffffff;
// The version of the zip specification that a reader needs for 64-bit numbers: 4.5.
constexpr std::uint64_t kVersion = 45;

struct Field {
  std::uint64_t value;
  int bytes;
};

void put(std::string& out, std::initializer_list<Field> fields) {
  for (const Field& field : fields) {
    for (int i = 0; i < field.bytes; ++i) out += static_cast<char>(field.value >> (8 * i) & 0xffU);
  }
}

}  // namespace

void ZipWriter::append(std::string_view part) {
  parts_.push_back(part);
  cursor_ += part.size();
}

void ZipWriter::add(const std::string& name, std::string_view data) {
  const auto checksum =
      static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
  entries_.push_back({.name = name, .size = data.size(), .begin = cursor_, .checksum = checksum});
  append(heads_.emplace_back(local_header(entries_.back())));
  append(data);
}

std::string ZipWriter::local_header(const Entry& entry) const {
  const bool wide = entry.size >= wide_from_;
  std::string extra;
  if (wide) put(extra, {{1, 2}, {16, 2}, {entry.size, 8}, {entry.size, 8}});
  // PyTorch's extra field 'FB' aligns the data by padding.
  const std::uint64_t unpadded =
      cursor_ + kLocalHeaderBytes + entry.name.size() + extra.size() + kExtraHeadBytes;
  const std::uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  extra += "FB";
  put(extra, {{padding, 2}});
  extra.append(padding, 'Z');

  const std::uint64_t size = wide ? kIn64Bits : entry.size;
  std::string head = "PK\3\4";
  put(head, {{kVersion, 2}, {0, 2}, {0, 2}, {0, 4}, {entry.checksum, 4}, {size, 4}, {size, 4}});
  put(head, {{entry.name.size(), 2}, {extra.size(), 2}});
  return head + entry.name + extra;
}

std::string ZipWriter::directory_entry(const Entry& entry) const {
  const bool wide = entry.size >= wide_from_;
  const bool far = entry.begin >= wide_from_;
  std::string numbers;
  if (wide) put(numbers, {{entry.size, 8}, {entry.size, 8}});
  if (far) put(numbers, {{entry.begin, 8}});
  std::string extra;
  if (!numbers.empty()) put(extra, {{1, 2}, {numbers.size(), 2}});
  extra += numbers;

  const std::uint64_t size = wide ? kIn64Bits : entry.size;
  std::string head = "PK\1\2";
  put(head,
      {{kVersion, 2}, {kVersion, 2}, {0, 2}, {0, 2}, {0, 4}, {entry.checksum, 4}, {size, 4}, {size, 4}});
  put(head, {{entry.name.size(), 2}, {extra.size(), 2}, {0, 2}, {0, 2}, {0, 2}, {0, 4}});
  put(head, {{far ? kIn64Bits : entry.begin, 4}});
  return head + entry.name + extra;
}

const std::vector<std::string_view>& ZipWriter::finish() {
  std::string directory;
  for (const Entry& entry : entries_) directory += directory_entry(entry);
  const std::uint64_t begin = cursor_;
  const std::uint64_t size = directory.size();
  const std::uint64_t count = entries_.size();
  const std::uint64_t end = begin + size;
  directory += "PK\6\6";
  put(directory,
      {{44, 8}, {kVersion, 2}, {kVersion, 2}, {0, 4}, {0, 4}, {count, 8}, {count, 8}, {size, 8}, {begin, 8}});
  directory += "PK\6\7";
  put(directory, {{0, 4}, {end, 8}, {1, 4}});
  directory += "PK\5\6";
  const std::uint64_t few = std::min<std::uint64_t>(count, 0xffff);
  put(directory, {{0, 2},
                  {0, 2},
                  {few, 2},
                  {few, 2},
                  {std::min(size, kIn64Bits), 4},
                  {std::min(begin, kIn64Bits), 4},
                  {0, 2}});
  append(heads_.emplace_back(std::move(directory)));
  return parts_;
}

}  // namespace acc::detail
