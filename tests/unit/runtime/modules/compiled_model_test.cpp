// SPDX-License-Identifier: Apache-2.0
// What a package computes is compared with Python in tests/parity/compiled.
#include "acc/runtime/modules/compiled_model.hpp"

#include <string>

#include "acc/base/files.hpp"
#include "acc/runtime/checkpoint/zip_writer.hpp"
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

// The error of loading a library from an archive that has this file of it.
std::string error_with(const std::string& entry, const std::string& content) {
  const acc::test::TemporaryFolder folder;
  acc::detail::ZipWriter zip;
  zip.add("net/data/aotinductor/training/" + entry, content);
  const auto file = folder.path() / "net.pt2";
  acc::replace_file(file, zip.finish());
  return error_of([&] { const acc::detail::CompiledLibrary library(file, "training", {}, {}); });
}

TEST_CASE("compiled library: a file without it, or with no code in it, is one line with its name",
          "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("net.pt2", "no archive");
  CHECK_THAT(error_of([&] { const acc::detail::CompiledLibrary library(file, "training", {}, {}); }),
             Contains("net.pt2: is not a zip archive"));
  CHECK_THAT(error_with("kernel.cpp", "int main() {}"), Contains("net.pt2: lacks the library 'training'"));
  const std::string error = error_with("kernel.so", "no code");
  CHECK_THAT(error, Contains("net.pt2: cannot be loaded: "));
  CHECK(error.find('\n') == std::string::npos);
}

}  // namespace compiled_model_test
