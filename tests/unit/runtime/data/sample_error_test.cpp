// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/sample_error.hpp"

#include <c10/util/Exception.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace {

// What becomes of the failure of sample 5 in a batch of 4, 5 and 6.
acc::Error error_of(const std::function<void()>& fail) {
  const auto read_one = [&](std::size_t index) {
    if (index == 5) fail();
  };
  try {
    try {
      fail();
    } catch (...) {
      acc::throw_naming_sample({4, 5, 6}, read_one);
    }
  } catch (const acc::Error& error) {
    return error;
  }
  return acc::Error({.what = "none"});
}

}  // namespace

TEST_CASE("sample_error: the sample at fault is found and named with the exception's text", "[runtime]") {
  CHECK(std::string(error_of([] { throw std::out_of_range("no such row"); }).what()) ==
        "sample 5: no such row");
  const acc::Error error = error_of([] { TORCH_CHECK(false, "expected 3 channels"); });
  CHECK(std::string(error.what()) == "sample 5: expected 3 channels");
}

TEST_CASE("sample_error: an Error keeps its kind, place and hint", "[runtime]") {
  const acc::Error error = error_of([] {
    throw acc::Error(
        {.kind = acc::ErrorKind::config, .what = "is torn", .where = "a.jpg", .hint = "copy it"});
  });
  CHECK(error.kind() == acc::ErrorKind::config);
  CHECK(error.problems().front() == acc::Problem{"is torn", "sample 5, a.jpg", "copy it"});
}

TEST_CASE("sample_error: what only the whole batch does wrong names the batch", "[runtime]") {
  try {
    try {
      throw std::runtime_error("different sizes");
    } catch (...) {
      acc::throw_naming_sample({4, 5, 6}, [](std::size_t /*index*/) {});
    }
    FAIL("no error");
  } catch (const acc::Error& error) {
    CHECK(std::string(error.what()) == "a batch of 3 samples, from sample 4 on: different sizes");
    CHECK_THROWS_AS(std::rethrow_if_nested(error), std::runtime_error);
  }
}

TEST_CASE("sample_error: what is no std::exception passes as it is", "[runtime]") {
  const auto pass = [] {
    try {
      throw 7;
    } catch (...) {
      acc::throw_naming_sample(3);
    }
  };
  CHECK_THROWS_AS(pass(), int);
}
