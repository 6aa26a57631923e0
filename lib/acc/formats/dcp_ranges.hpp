// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "acc/formats/dcp_metadata.hpp"

namespace acc {

/// A box of a tensor that is contiguous in memory, and the index of its first element in row-major order.
struct DcpRangeBox {
  DcpBox box = {};
  std::uint64_t begin = 0;

  bool operator==(const DcpRangeBox&) const = default;
};

/// Divides the elements [begin, end) of a tensor, in row-major order, into boxes, the only parts of a tensor
/// that a checkpoint knows: at most 2 * dimensions - 1, in this order. None for an empty range, but one for a
/// tensor without elements.
std::vector<DcpRangeBox> boxes_of_range(const std::vector<std::int64_t>& shape, std::uint64_t begin,
                                        std::uint64_t end);

/// The index of an element in row-major order.
std::uint64_t dcp_index(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& offsets);

/// Reads the elements [begin, end) of a tensor, in row-major order, into `to`, from whatever parts are stored
/// in `folder`. Maps one part after the other into memory. Throws Error naming a missing or damaged file.
void read_dcp_range(const std::filesystem::path& folder, const DcpTensor& tensor, std::uint64_t begin,
                    std::uint64_t end, char* to);

}  // namespace acc
