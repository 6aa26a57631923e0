// SPDX-License-Identifier: Apache-2.0
// Python's pickles: plain data or refused, whoever made them. Nothing in them is executed; there are not more
// values than bytes.
#include "acc/formats/pickle_reader.hpp"
#include "fuzz/pickle_values.hpp"
#include "fuzz/promise.hpp"

namespace {

void check(acc::PickleReader reader, std::string_view bytes) {
  fuzz::value_or_error([&] {
    const std::size_t count = fuzz::values_from(reader.read(bytes)).size();
    fuzz::require(count <= bytes.size(), "there are not more values than bytes");
    return count;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  check(acc::PickleReader::of_any_class(), bytes);
  check(acc::PickleReader({"datetime.datetime", "collections.OrderedDict"}), bytes);
  return 0;
}
