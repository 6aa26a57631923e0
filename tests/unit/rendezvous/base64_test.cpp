// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/base64.hpp"

#include <string>

#include "support/catch.hpp"

namespace base64_test {

TEST_CASE("base64: as Python's b64encode, and back", "[rendezvous]") {
  using namespace std::string_literals;
  const auto [bytes, text] = GENERATE(table<std::string, std::string>({{"", ""},
                                                                       {"a", "YQ=="},
                                                                       {"ab", "YWI="},
                                                                       {"abc", "YWJj"},
                                                                       {"canimadam", "Y2FuaW1hZGFt"},
                                                                       {"\0\xff\xfe\0"s, "AP/+AA=="}}));
  CHECK(acc::launcher::to_base64(bytes) == text);
  CHECK(acc::launcher::from_base64(text) == bytes);
}

TEST_CASE("base64: invalid text is refused", "[rendezvous]") {
  const std::string text =
      GENERATE("a", "YQ=", "YQ", "Y===", "YW\n=", "Y=Q=", "YQ==\n", "-_-_", "aGVsbG8\xbd");
  CHECK_FALSE(acc::launcher::from_base64(text).has_value());
}

}  // namespace base64_test
