// SPDX-License-Identifier: Apache-2.0
// Headers of safetensors files: the tensors lie within the file, one behind the other; written again they are
// the same, and a file is read as its bytes are.
#include "acc/formats/safetensors.hpp"

#include "fuzz/promise.hpp"
#include "support/temporary_folder.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using acc::parse_safetensors_header;
  const std::string_view file = fuzz::text_of(data, size);
  const auto header = fuzz::value_or_error([&] { return parse_safetensors_header(file, "a.safetensors"); });
  static const acc::test::TemporaryFolder folder;
  const auto path = folder.write("a.safetensors", std::string(file));
  const auto of_file = fuzz::value_or_error([&] { return acc::read_safetensors_header(path); });
  fuzz::require(of_file.has_value() == header.has_value(), "a file is read as its bytes are");
  if (!header) return 0;
  std::uint64_t end = 0;
  for (const acc::TensorInfo& tensor : header->tensors) {
    fuzz::require(tensor.begin == end && tensor.end >= tensor.begin, "tensors lie one behind the other",
                  tensor.name);
    const auto bits = static_cast<std::uint64_t>(acc::bits_of(tensor.dtype).value());
    fuzz::require(static_cast<std::uint64_t>(elements(tensor)) * bits == (tensor.end - tensor.begin) * 8,
                  "a tensor has the bytes of its shape", tensor.name);
    end = tensor.end;
  }
  fuzz::require(header->data_begin + end == file.size(), "the tensors fill the file");
  acc::SafetensorsHeader again =
      parse_safetensors_header(format_safetensors_header(*header) + std::string(end, '\0'), "a.safetensors");
  again.data_begin = header->data_begin;
  fuzz::require(again.tensors.size() == header->tensors.size() && again.metadata == header->metadata,
                "a header is written as it was read");
  return 0;
}
