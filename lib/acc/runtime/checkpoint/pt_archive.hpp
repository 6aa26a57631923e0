// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/checkpoint/zip_writer.hpp"

namespace acc::detail {

/// The bytes of a file of torch.save. Tensors on the CPU that are contiguous are not copied: they must not
/// change while the archive exists.
class PtArchive {
 public:
  /// Throws Error{usage} with `where` for a value that torch.save lacks, see write_pt_file.
  PtArchive(const PtValue& value, const std::string& where);
  PtArchive(const PtArchive&) = delete;
  PtArchive& operator=(const PtArchive&) = delete;

  /// The bytes, one part after the other.
  const std::vector<std::string_view>& parts() const { return *parts_; }
  /// The size of all parts.
  std::uint64_t size() const;

 private:
  std::string pickle_ = {};
  std::vector<at::Tensor> tensors_ = {};
  ZipWriter zip_ = ZipWriter();
  const std::vector<std::string_view>* parts_ = nullptr;
};

/// Reads such bytes as read_pt_file does: `length` bytes of `file` from `begin` on, by default all.
PtValue read_pt_archive(const std::filesystem::path& file, std::uint64_t begin,
                        std::optional<std::uint64_t> length);

}  // namespace acc::detail
