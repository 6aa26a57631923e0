// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/file_name.hpp"

#include "support/catch.hpp"

namespace file_name_test {

using acc::is_below_folder;
using namespace std::string_view_literals;

TEST_CASE("file_name: names of files in a folder and its subfolders stay below it", "[formats]") {
  for (const char* name : {"a", ".a", "..a", "a..", "...", "a b", "__0_0.distcp", "a/b", "a/.b/c"}) {
    INFO(name);
    CHECK(is_below_folder(name));
  }
}

TEST_CASE("file_name: what leads elsewhere, or is cut by the system, does not", "[formats]") {
  for (const std::string_view name : {""sv, "."sv, ".."sv, "/"sv, "/a"sv, "a/"sv, "a//b"sv, "./a"sv, "../a"sv,
                                      "a/.."sv, "a/../../b"sv, "a\0b"sv}) {
    INFO(name);
    CHECK_FALSE(is_below_folder(name));
  }
}

}  // namespace file_name_test
