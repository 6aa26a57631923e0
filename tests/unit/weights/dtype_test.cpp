// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/dtype.hpp"

#include "support/catch.hpp"

TEST_CASE("dtype: types have widths, and unknown ones none", "[weights]") {
  CHECK(acc::launcher::bits_of("F32") == 32);
  CHECK(acc::launcher::bits_of("BF16") == 16);
  CHECK(acc::launcher::bits_of("F4") == 4);
  CHECK_FALSE(acc::launcher::bits_of("float32"));
}
