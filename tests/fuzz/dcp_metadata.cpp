// SPDX-License-Identifier: Apache-2.0
// The metadata of a sharded checkpoint: each part lies within its tensor, in a file of the folder; written
// again they are the same.
#include "acc/formats/dcp_metadata.hpp"

#include "fuzz/promise.hpp"
#include "support/temporary_folder.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using acc::parse_dcp_metadata;
  const auto metadata = fuzz::value_or_error([&] { return parse_dcp_metadata(fuzz::text_of(data, size)); });
  static const acc::test::TemporaryFolder folder;
  folder.write(std::string(acc::kDcpMetadataFile), std::string(fuzz::text_of(data, size)));
  const auto of_file = fuzz::value_or_error([&] { return acc::read_dcp_metadata(folder.path()); });
  fuzz::require(!of_file || of_file == metadata, "a file is read as its bytes are");
  if (!metadata) return 0;
  for (const auto& [name, tensor] : metadata->tensors) {
    acc::dcp_name(tensor.path);
    for (const acc::DcpChunk& chunk : tensor.chunks) {
      const std::string& file = chunk.storage.file;
      fuzz::require(!file.empty() && file != "." && file != ".." && file.find('/') == std::string::npos,
                    "a part is in the folder", file);
      for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
        fuzz::require(
            chunk.box.offsets.at(i) >= 0 && chunk.box.offsets[i] + chunk.box.sizes.at(i) <= tensor.shape[i],
            "a part lies within its tensor", name);
      }
    }
  }
  fuzz::require(parse_dcp_metadata(format_dcp_metadata(*metadata)) == *metadata,
                "metadata are written as read");
  return 0;
}
