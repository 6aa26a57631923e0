// SPDX-License-Identifier: Apache-2.0
// What a package computes is compared with Python in tests/parity/compiled.
#include "acc/runtime/modules/compiled_model.hpp"

#include "acc/runtime/modules/compiled_library.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace compiled_model_test {

using acc::test::error_of;
using Catch::Matchers::Contains;

TEST_CASE("compiled model: a file that is no package is one line with its name", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("net.pt2", "no archive");
  CHECK_THAT(error_of([&] { const acc::CompiledModel net(file); }),
             Contains("net.pt2: is not a zip archive"));
}

TEST_CASE("compiled library: a file without it is one line with its name", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("net.pt2", "no archive");
  CHECK_THAT(error_of([&] { const acc::detail::CompiledLibrary library(file, "training", {}, {}); }),
             Contains("net.pt2: cannot be loaded"));
}

}  // namespace compiled_model_test
