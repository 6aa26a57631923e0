// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/dcp_ranges.hpp"

#include <algorithm>

#include "acc/base/files.hpp"
#include "acc/formats/safetensors.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace dcp_ranges_test {

namespace {

namespace fs = std::filesystem;
using Sizes = std::vector<std::int64_t>;

// The indices of a box's elements in the whole tensor, in row-major order.
std::vector<std::uint64_t> elements_of(const Sizes& shape, const acc::DcpBox& box) {
  std::vector<std::uint64_t> indices = {0};
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    std::vector<std::uint64_t> deeper;
    for (const std::uint64_t index : indices) {
      for (std::int64_t i = 0; i < box.sizes[dim]; ++i)
        deeper.push_back(index * static_cast<std::uint64_t>(shape[dim]) +
                         static_cast<std::uint64_t>(box.offsets[dim] + i));
    }
    indices = deeper;
  }
  return indices;
}

// Written by tests/parity/record_dcp.py: two processes, and the same weights whole.
fs::path recorded() {
  return fs::path(ACC_TEST_DATA) / "dcp";
}

}  // namespace

TEST_CASE("dcp ranges: every range is some boxes, which cover it once and in order", "[formats]") {
  for (const Sizes& shape : {Sizes{}, {7}, {1, 6}, {5, 3}, {3, 2, 4}, {2, 1, 3, 2}}) {
    const std::uint64_t count = acc::dcp_elements(shape);
    const std::size_t most = shape.empty() ? 1 : 2 * shape.size() - 1;
    for (std::uint64_t begin = 0; begin < count; ++begin) {
      for (std::uint64_t end = begin; end <= count; ++end) {
        const std::vector<acc::DcpRangeBox> boxes = acc::boxes_of_range(shape, begin, end);
        CHECK(boxes.size() <= most);
        std::uint64_t next = begin;
        for (const auto& [box, first] : boxes) {
          CHECK(first == next);
          for (const std::uint64_t index : elements_of(shape, box)) CHECK(index == next++);
        }
        CHECK(next == end);
      }
    }
  }
}

TEST_CASE("dcp ranges: a tensor without elements is one box", "[formats]") {
  CHECK(acc::boxes_of_range({0, 3}, 0, 0) == std::vector<acc::DcpRangeBox>{{{{0, 0}, {0, 3}}, 0}});
}

TEST_CASE("dcp ranges: any range is read from parts by rows and by columns", "[formats]") {
  const std::string bytes = acc::read_file(recorded() / "whole.safetensors");
  const acc::SafetensorsHeader header = acc::read_safetensors_header(recorded() / "whole.safetensors");
  const acc::DcpMetadata metadata = acc::read_dcp_metadata(recorded() / "sharded");
  for (const acc::TensorInfo& wanted : header.tensors) {
    INFO(wanted.name);
    const acc::DcpTensor& tensor = metadata.tensors.at("model." + wanted.name);
    const std::string whole = bytes.substr(header.data_begin + wanted.begin, wanted.end - wanted.begin);
    const std::size_t width = tensor.dtype->bytes;
    const std::uint64_t count = acc::dcp_elements(tensor.shape);
    for (std::uint64_t begin = 0; begin <= count; ++begin) {
      for (std::uint64_t end = begin; end <= count; ++end) {
        std::string part((end - begin) * width, '\0');
        acc::read_dcp_range(recorded() / "sharded", tensor, begin, end, part.data());
        CHECK(part == whole.substr(begin * width, (end - begin) * width));
      }
    }
  }
}

TEST_CASE("dcp ranges: a truncated file, and one with another tensor, are named", "[formats]") {
  const acc::test::TemporaryFolder folder;
  fs::copy(recorded() / "sharded", folder.path(), fs::copy_options::recursive);
  acc::DcpTensor tensor = acc::read_dcp_metadata(folder.path()).tensors.at("model.rows.weight");
  const auto error = [&] {
    return acc::test::error_of([&] {
      std::string to(60, '\0');
      acc::read_dcp_range(folder.path(), tensor, 0, 15, to.data());
    });
  };
  CHECK(error() == "no error");
  const std::string file = (folder.path() / tensor.chunks[0].storage.file).string();
  std::swap(tensor.chunks[0].storage, tensor.chunks[1].storage);
  CHECK(error().ends_with(": is damaged: a part of 'model.rows.weight' is another tensor"));
  std::swap(tensor.chunks[0].storage, tensor.chunks[1].storage);
  fs::resize_file(file, 100);
  CHECK(error() == file + ": is truncated");
}

}  // namespace dcp_ranges_test
