// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/event_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "acc/base/machine.hpp"
#include "acc/runtime/tracking/protobuf.hpp"
#include "acc/runtime/tracking/seconds_since_1970.hpp"
#include "acc/runtime/tracking/summary_event.hpp"

namespace acc {
namespace {

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ (crc & 1U) * 0x82f63b78U;
    table[i] = crc;
  }
  return table;
}();

// A CRC over bytes that hold a CRC says little: stored ones are turned and shifted.
std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return (crc >> 15U | crc << 17U) + 0xa282ead8U;
}

// Two of one second have different names.
std::string new_name() {
  static std::atomic<int> made = 0;
  return fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<std::int64_t>(seconds_since_1970()),
                     probe_machine(false).hostname, ::getpid(), made++);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) crc = crc >> 8U ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xffU];
  return ~crc;
}

std::string framed_record(std::string_view bytes) {
  std::string record;
  append_little_endian(record, bytes.size(), 8);
  append_little_endian(record, masked_crc32c(record), 4);
  record += bytes;
  append_little_endian(record, masked_crc32c(bytes), 4);
  return record;
}

EventFile::EventFile(const std::filesystem::path& folder) : file_(folder / new_name()) {
  append(version_event(seconds_since_1970()));
}

}  // namespace acc
