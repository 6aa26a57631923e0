// SPDX-License-Identifier: Apache-2.0
#include "acc/base/short_size.hpp"

#include "support/catch.hpp"

namespace short_size_test {

TEST_CASE("short_size: three digits are enough", "[base]") {
  using acc::short_size;
  CHECK(short_size(0) == "0.0 MiB");
  CHECK(short_size(std::uint64_t{512} << 20U) == "512 MiB");
  CHECK(short_size(std::uint64_t{3} << 29U) == "1.5 GiB");
}

}  // namespace short_size_test
