// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/result_text.hpp"

#include <cstdint>
#include <limits>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace result_text_test {

using namespace acc;
using namespace acc::detail;
using namespace acc::test;

namespace {

template <class T>
T sent(const T& value) {
  return ResultText<T>::read(ResultText<T>::write(value));
}

}  // namespace

TEST_CASE("result_text: numbers and strings arrive as they are", "[notebook]") {
  CHECK(sent(std::int64_t{-5}) == -5);
  CHECK(sent(0.1) == 0.1);
  CHECK(sent(std::numeric_limits<double>::infinity()) == std::numeric_limits<double>::infinity());
  CHECK(sent(true));
  CHECK(sent(std::string("a\0b", 3)) == std::string("a\0b", 3));
  CHECK(sent(std::string()).empty());
}

TEST_CASE("result_text: vectors arrive whole, also empty and nested ones", "[notebook]") {
  using Numbers = std::vector<double>;
  using Words = std::vector<std::string>;
  CHECK(sent(Numbers{1.5, -2}) == Numbers{1.5, -2});
  CHECK(sent(Numbers()).empty());
  CHECK(sent(Words{"a", "", "c"}) == Words{"a", "", "c"});
  CHECK(sent(std::vector<Numbers>{{}, {1, 2}, {}}) == std::vector<Numbers>{{}, {1, 2}, {}});
  CHECK(sent(std::vector<bool>{true, false, true}) == std::vector<bool>{true, false, true});
}

TEST_CASE("result_text: what is no such value is refused, not read beyond its end", "[notebook]") {
  const std::string damaged = "notebook_launcher: what another process sent is damaged";
  const auto refusal = [](auto value, std::string_view text) {
    return error_of([&] { ResultText<decltype(value)>::read(text); });
  };
  CHECK(refusal(std::vector<double>(), "123456789").starts_with(damaged));
  CHECK(refusal(std::vector<std::string>(), "1234567").starts_with(damaged));
  CHECK(refusal(std::vector<std::string>(), std::string(8, '\xff') + "abc").starts_with(damaged));
  CHECK(refusal(std::int64_t(), "1234").find("has 4 bytes, and its type here has 8") != std::string::npos);
}

}  // namespace result_text_test
