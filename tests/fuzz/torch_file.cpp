// SPDX-License-Identifier: Apache-2.0
// Zip archives, and files of torch.save within them: each file lies within the archive, each tensor within
// its storage.
#include "acc/formats/torch_file.hpp"

#include "acc/formats/zip_archive.hpp"
#include "fuzz/pickle_values.hpp"
#include "fuzz/promise.hpp"

namespace {

bool is_within(std::string_view part, std::string_view whole) {
  return part.data() == nullptr || part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void check_tensor(const acc::StoredTensor& tensor, std::string_view bytes) {
  fuzz::require(is_within(tensor.bytes, bytes), "a tensor lies within the file");
  fuzz::require(tensor.dtype != nullptr && tensor.sizes.size() == tensor.strides.size(),
                "a tensor has a form");
  for (const std::int64_t size : tensor.sizes) fuzz::require(size >= 0, "a size is not negative");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  const auto entries = fuzz::value_or_error([&] { return acc::read_zip(bytes); });
  if (!entries) return 0;
  for (const auto& [name, content] : *entries) {
    fuzz::require(is_within(name, bytes) && is_within(content, bytes), "a file lies within the archive",
                  name);
  }
  fuzz::value_or_error([&] {
    const acc::TorchFile file(bytes);
    for (const acc::PickleValue* value : fuzz::values_from(file.root())) {
      const auto tensor = fuzz::value_or_error([&] { return file.tensor(*value); });
      if (tensor && *tensor) check_tensor(**tensor, bytes);
    }
    return true;
  });
  return 0;
}
