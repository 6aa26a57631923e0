// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/zip_archive.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "acc/formats/refusal.hpp"

namespace acc {
namespace {

// Names and offsets as in PKWARE's APPNOTE 6.3.
constexpr std::string_view kLocalHeader = "PK\3\4";
constexpr std::string_view kDirectoryEntry = "PK\1\2";
constexpr std::string_view kEnd = "PK\5\6";
constexpr std::string_view kEnd64 = "PK\6\6";
constexpr std::string_view kEnd64Locator = "PK\6\7";
constexpr std::size_t kLocalHeaderBytes = 30;
constexpr std::size_t kDirectoryEntryBytes = 46;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kEnd64LocatorBytes = 20;
constexpr std::size_t kMaxCommentBytes = 0xffff;
constexpr std::uint64_t kIn64Bits = 0xffffffff;
constexpr std::uint64_t kExtra64 = 1;

std::string_view part(std::string_view bytes, std::uint64_t begin, std::uint64_t size) {
  if (begin > bytes.size() || size > bytes.size() - begin) refuse("is a damaged zip archive");
  return bytes.substr(begin, size);
}

std::uint64_t number(std::string_view bytes, std::uint64_t begin, int size) {
  std::uint64_t value = 0;
  int shift = 0;
  for (const char byte : part(bytes, begin, static_cast<std::uint64_t>(size))) {
    value |= std::uint64_t{static_cast<std::uint8_t>(byte)} << shift;
    shift += 8;
  }
  return value;
}

struct Directory {
  std::uint64_t count = 0;
  std::uint64_t size = 0;
  std::uint64_t begin = 0;
};

// The end-of-central-directory record is the last one; a comment may follow it.
std::size_t find_end(std::string_view archive) {
  if (archive.size() >= kEndBytes) {
    const std::size_t last = archive.size() - kEndBytes;
    const std::size_t found = archive.rfind(kEnd, last);
    if (found != std::string_view::npos && last - found <= kMaxCommentBytes) return found;
  }
  refuse("is not a zip archive, or is truncated");
}

Directory find_directory(std::string_view archive) {
  const std::size_t end = find_end(archive);
  Directory directory{.count = number(archive, end + 10, 2),
                      .size = number(archive, end + 12, 4),
                      .begin = number(archive, end + 16, 4)};
  if (end < kEnd64LocatorBytes) return directory;
  const std::string_view locator = part(archive, end - kEnd64LocatorBytes, kEnd64LocatorBytes);
  if (!locator.starts_with(kEnd64Locator)) return directory;
  const std::string_view end64 = part(archive, number(locator, 8, 8), kEnd64Bytes);
  if (!end64.starts_with(kEnd64)) refuse("is a damaged zip archive");
  return {.count = number(end64, 32, 8), .size = number(end64, 40, 8), .begin = number(end64, 48, 8)};
}

// Reads the numbers that do not fit into 32 bits from the zip64 extra field, where they stand in this order.
void widen(std::string_view extras, std::initializer_list<std::uint64_t*> numbers) {
  while (extras.size() >= 4) {
    const std::uint64_t size = number(extras, 2, 2);
    if (number(extras, 0, 2) == kExtra64) {
      const std::string_view extra = part(extras, 4, size);
      std::uint64_t at = 0;
      for (std::uint64_t* wide : numbers) {
        if (*wide != kIn64Bits) continue;
        *wide = number(extra, at, 8);
        at += 8;
      }
      return;
    }
    extras.remove_prefix(part(extras, 0, 4 + size).size());
  }
}

// Removes the next entry from the front of `directory` and returns its name and bytes.
std::pair<std::string_view, std::string_view> take_entry(std::string_view& directory,
                                                         std::string_view archive) {
  const std::string_view head = part(directory, 0, kDirectoryEntryBytes);
  if (!head.starts_with(kDirectoryEntry)) refuse("is a damaged zip archive");
  const std::uint64_t flags = number(head, 8, 2);
  const std::uint64_t method = number(head, 10, 2);
  std::uint64_t stored = number(head, 20, 4);
  std::uint64_t size = number(head, 24, 4);
  std::uint64_t local = number(head, 42, 4);
  const std::uint64_t name_size = number(head, 28, 2);
  const std::uint64_t extra_size = number(head, 30, 2);
  const std::string_view name = part(directory, kDirectoryEntryBytes, name_size);
  widen(part(directory, kDirectoryEntryBytes + name_size, extra_size), {&size, &stored, &local});
  const std::uint64_t entry = kDirectoryEntryBytes + name_size + extra_size + number(head, 32, 2);
  directory.remove_prefix(part(directory, 0, entry).size());

  if (method != 0 || stored != size || (flags & 1U) != 0) return {name, {}};
  const std::string_view local_head = part(archive, local, kLocalHeaderBytes);
  if (!local_head.starts_with(kLocalHeader)) refuse("is a damaged zip archive");
  const std::uint64_t skip = kLocalHeaderBytes + number(local_head, 26, 2) + number(local_head, 28, 2);
  return {name, part(archive.substr(local), skip, size)};
}

}  // namespace

ZipEntries read_zip(std::string_view archive) {
  const Directory location = find_directory(archive);
  std::string_view directory = part(archive, location.begin, location.size);
  ZipEntries entries;
  for (std::uint64_t i = 0; i < location.count; ++i) entries.insert(take_entry(directory, archive));
  return entries;
}

}  // namespace acc
