// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/object_text.hpp"

#include <cstdint>
#include <map>

#include "acc/runtime/comm/objects.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace object_text_test {

using acc::ObjectText;
using acc::test::error_of;
using Catch::Matchers::Contains;
using nlohmann::json;

TEST_CASE("object_text: a value of another size is refused, not read beyond its end", "[runtime]") {
  const std::string four_bytes = ObjectText<float>::write(0.5F);
  CHECK(ObjectText<float>::read(four_bytes) == 0.5F);
  CHECK(error_of([&] { ObjectText<double>::read(four_bytes); }) ==
        "an object of another process has 4 bytes, and its type here has 8 (let all processes send and "
        "receive the same type)");
  CHECK_THAT(error_of([&] { ObjectText<bool>::read(four_bytes); }), Contains("its type here has 1"));
  CHECK_THAT(error_of([] { ObjectText<std::int64_t>::read(""); }), Contains("has 0 bytes"));
}

TEST_CASE("object_text: each byte is a truth", "[runtime]") {
  CHECK_FALSE(ObjectText<bool>::read(ObjectText<bool>::write(false)));
  CHECK(ObjectText<bool>::read(ObjectText<bool>::write(true)));
  CHECK(ObjectText<bool>::read("\x02"));
}

TEST_CASE("objects: JSON of another type, or damaged, is refused in one line", "[runtime]") {
  using Names = std::map<std::string, int>;
  CHECK(ObjectText<Names>::read(ObjectText<Names>::write({{"a", 1}})) == Names{{"a", 1}});
  CHECK_THAT(error_of([] { ObjectText<Names>::read(ObjectText<json>::write(json::array({1, 2}))); }),
             Contains("an object of another process is not of the type here: "));
  CHECK_THAT(error_of([] { ObjectText<Names>::read("\xa1"); }), Contains("is not of the type here: "));
  CHECK_THAT(error_of([] { ObjectText<json>::read(std::string(1'000'000, '\x81')); }),
             Contains("an object of another process is nested too deeply"));
}

}  // namespace object_text_test
