// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace acc::detail {

/// A zip archive as torch.save lays it out: stored, each file's bytes at a multiple of 64. The bytes are
/// referred to, not copied.
class ZipWriter {
 public:
  /// From `wide_from` on numbers are written in 64 bits.
  explicit ZipWriter(std::uint64_t wide_from = 0xffffffff) : wide_from_(wide_from) {}

  /// `data` must stay as it is until the archive is written.
  void add(const std::string& name, std::string_view data);

  /// The archive's bytes, one part after the other; nothing can be added after it.
  const std::vector<std::string_view>& finish();

 private:
  struct Entry {
    std::string name = {};
    std::uint64_t size = 0;
    std::uint64_t begin = 0;
    std::uint32_t checksum = 0;
  };

  std::string local_header(const Entry& entry) const;
  std::string directory_entry(const Entry& entry) const;
  void append(std::string_view part);

  std::uint64_t wide_from_;
  std::uint64_t cursor_ = 0;
  std::vector<Entry> entries_ = {};
  std::deque<std::string> heads_ = {};  // addresses stay
  std::vector<std::string_view> parts_ = {};
};

}  // namespace acc::detail
