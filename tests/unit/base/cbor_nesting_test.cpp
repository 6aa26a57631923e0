// SPDX-License-Identifier: Apache-2.0
#include "acc/base/cbor_nesting.hpp"

#include <string>

#include "support/catch.hpp"

namespace cbor_nesting_test {

using acc::is_deeply_nested_cbor;

namespace {

constexpr std::size_t kDeep = 1'000'000;

std::string repeated(std::string_view head) {
  std::string cbor;
  while (cbor.size() < kDeep) cbor += head;
  return cbor;
}

}  // namespace

TEST_CASE("cbor_nesting: arrays, maps and parts of texts without an end are too deep", "[base]") {
  for (const char* head :
       {"\x81", "\x82\x01", "\x9f", "\xa1\x61k", "\xbf\x61k", "\x7f", "\x5f", "\x98\x01", "\x99\x7f\x7f",
        "\x9b\xff\xff\xff\xff\xff\xff\xff\xff", "\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x61k"}) {
    INFO(Catch::StringMaker<std::string>::convert(head));
    CHECK(is_deeply_nested_cbor(repeated(head)));
  }
}

TEST_CASE("cbor_nesting: what is long is not deep", "[base]") {
  std::string list = "\x9a";
  list += std::string("\0\x0f\x42\x40", 4);  // a million items
  CHECK_FALSE(is_deeply_nested_cbor(list + repeated(std::string_view("\x80", 1))));
  CHECK_FALSE(is_deeply_nested_cbor(list + repeated("\x81\x01")));
  CHECK_FALSE(is_deeply_nested_cbor(list + repeated("\x9f\xff")));
  CHECK_FALSE(is_deeply_nested_cbor(list + repeated("\x65[[[[[")));
  CHECK_FALSE(is_deeply_nested_cbor("\x9f" + repeated("\xf9\x81\x81")));
  CHECK_FALSE(is_deeply_nested_cbor(std::string(1000, '\x81')));
}

TEST_CASE("cbor_nesting: where a value ends, or is none, nothing is read", "[base]") {
  const std::string deep = repeated("\x81");
  CHECK_FALSE(is_deeply_nested_cbor(""));
  CHECK_FALSE(is_deeply_nested_cbor("\x01" + deep));
  CHECK_FALSE(is_deeply_nested_cbor("\xff" + deep));
  CHECK_FALSE(is_deeply_nested_cbor("\x9c" + deep));
  CHECK_FALSE(is_deeply_nested_cbor("\x5b\x7f\xff\xff\xff\xff\xff\xff\xff" + deep));
  CHECK_FALSE(is_deeply_nested_cbor("\x1b\x01"));
}

}  // namespace cbor_nesting_test
