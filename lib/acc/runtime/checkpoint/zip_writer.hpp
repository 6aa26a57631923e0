// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace acc::detail {

/// A zip archive with the layout of torch.save: uncompressed, the data of each file aligned to 64 bytes. The
/// archive refers to the data and does not copy it.
class ZipWriter {
 public:
  /// Numbers of at least `wide_from` are written as 64 bits.
  explicit ZipWriter(std::uint64_t wide_from = 0xffffffff) : wide_from_(wide_from) {}

  /// `data` must not change until the archive is written.
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
  std::deque<std::string> heads_ = {};  // keeps addresses valid
  std::vector<std::string_view> parts_ = {};
};

}  // namespace acc::detail
