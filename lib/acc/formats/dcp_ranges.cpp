// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/dcp_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/formats/refusal.hpp"

namespace acc {
namespace {

using Strides = std::vector<std::uint64_t>;

// Of a contiguous tensor.
Strides strides_of(const std::vector<std::int64_t>& shape) {
  Strides strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * static_cast<std::uint64_t>(shape[i]);
  return strides;
}

class RangeDivision {
 public:
  explicit RangeDivision(const std::vector<std::int64_t>& shape)
      : shape_(shape), strides_(strides_of(shape)) {}

  std::vector<DcpRangeBox> divide(std::uint64_t begin, std::uint64_t end) {
    add({}, begin, end, 0);
    return std::move(boxes_);
  }

 private:
  // The elements [begin, end), counted from element `first` of the tensor, of the slice at `indices`.
  void add(std::vector<std::int64_t> indices, std::uint64_t begin, std::uint64_t end, std::uint64_t first) {
    if (begin >= end) return;
    const std::uint64_t stride = strides_[indices.size()];
    const auto add_part = [&](std::uint64_t row, std::uint64_t from, std::uint64_t to) {
      std::vector<std::int64_t> deeper = indices;
      deeper.push_back(static_cast<std::int64_t>(row));
      add(std::move(deeper), from, to, first + row * stride);
    };
    std::uint64_t row = begin / stride;
    const std::uint64_t last = end / stride;
    if (begin % stride != 0) {
      if (row == last) return add_part(row, begin % stride, end % stride);
      add_part(row++, begin % stride, stride);
    }
    if (row < last) add_rows(indices, row, last - row, first + row * stride);
    if (end % stride != 0) add_part(last, 0, end % stride);
  }

  void add_rows(const std::vector<std::int64_t>& indices, std::uint64_t row, std::uint64_t rows,
                std::uint64_t begin) {
    DcpRangeBox box{.box = {.offsets = indices, .sizes = std::vector<std::int64_t>(indices.size(), 1)},
                    .begin = begin};
    box.box.offsets.push_back(static_cast<std::int64_t>(row));
    box.box.sizes.push_back(static_cast<std::int64_t>(rows));
    box.box.offsets.resize(shape_.size(), 0);
    box.box.sizes.insert(box.box.sizes.end(),
                         shape_.begin() + static_cast<std::ptrdiff_t>(indices.size()) + 1, shape_.end());
    boxes_.push_back(std::move(box));
  }

  const std::vector<std::int64_t>& shape_;
  Strides strides_;
  std::vector<DcpRangeBox> boxes_ = {};
};

// Copies what a part of a tensor, with any strides, has of a range of the tensor's elements.
struct CopyRange {
  const StoredTensor& part;
  const Strides& strides;  // of the whole
  std::uint64_t begin;
  std::uint64_t end;
  char* to;

  // From dimension `dim` on; `index` is that of the first element in the whole tensor.
  void operator()(const char* from, std::uint64_t index, std::size_t dim) const {
    const std::size_t width = part.dtype->bytes;
    if (dim == part.sizes.size()) return copy(from, index, 1);
    const auto count = static_cast<std::uint64_t>(part.sizes[dim]);
    if (dim + 1 == part.sizes.size() && part.strides[dim] == 1) return copy(from, index, count);
    for (std::uint64_t i = 0; i < count; ++i, index += strides[dim]) {
      if (index >= end) return;
      if (index + strides[dim] > begin)
        (*this)(from + i * static_cast<std::uint64_t>(part.strides[dim]) * width, index, dim + 1);
    }
  }

  void copy(const char* from, std::uint64_t index, std::uint64_t count) const {
    const std::uint64_t first = std::max(begin, index);
    const std::uint64_t last = std::min(end, index + count);
    if (first >= last) return;
    const std::size_t width = part.dtype->bytes;
    std::memcpy(to + (first - begin) * width, from + (first - index) * width, (last - first) * width);
  }
};

}  // namespace

std::vector<DcpRangeBox> boxes_of_range(const std::vector<std::int64_t>& shape, std::uint64_t begin,
                                        std::uint64_t end) {
  const bool whole = begin == 0 && end == dcp_elements(shape);
  if (whole) return {{.box = {.offsets = std::vector<std::int64_t>(shape.size(), 0), .sizes = shape}}};
  return RangeDivision(shape).divide(begin, end);
}

std::uint64_t dcp_index(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& offsets) {
  std::uint64_t index = 0;
  for (std::size_t i = 0; i < shape.size(); ++i)
    index = index * static_cast<std::uint64_t>(shape[i]) + static_cast<std::uint64_t>(offsets[i]);
  return index;
}

void read_dcp_range(const std::filesystem::path& folder, const DcpTensor& tensor, std::uint64_t begin,
                    std::uint64_t end, char* to) {
  const Strides strides = strides_of(tensor.shape);
  for (const auto& [box, storage] : tensor.chunks) {
    if (dcp_elements(box.sizes) == 0) continue;
    // The elements of the box are between its first and its last corner.
    const std::uint64_t first = dcp_index(tensor.shape, box.offsets);
    std::vector<std::int64_t> corner = box.offsets;
    for (std::size_t i = 0; i < corner.size(); ++i) corner[i] += box.sizes[i] - 1;
    if (first >= end || dcp_index(tensor.shape, corner) < begin) continue;
    const std::filesystem::path path = folder / storage.file;
    const MappedFile mapped(path);
    const std::string_view bytes(mapped.data(), mapped.size());
    try {
      if (storage.begin > bytes.size() || storage.length > bytes.size() - storage.begin)
        refuse("is truncated");
      const TorchFile file(bytes.substr(storage.begin, storage.length));
      const auto part = file.tensor(file.root());
      if (!part || part->sizes != box.sizes || part->dtype != tensor.dtype)
        refuse(fmt::format("is damaged: a part of '{}' is another tensor", dcp_name(tensor.path)));
      CopyRange{*part, strides, begin, end, to}(part->bytes.data(), first, 0);
    } catch (const Error& error) {
      throw Error({.kind = error.kind(), .what = error.problems().front().what, .where = path.string()});
    }
  }
}

}  // namespace acc
