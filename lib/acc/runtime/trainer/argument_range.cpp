// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/argument_range.hpp"

#include "acc/base/error.hpp"

namespace acc::detail {
namespace {

bool contains(Range range, double value) {
  switch (range) {
    case Range::positive:
      return value > 0;
    case Range::not_negative:
      return value >= 0;
    case Range::below_one:
      return value >= 0 && value < 1;
  }
  return false;
}

const char* text_of(Range range) {
  switch (range) {
    case Range::positive:
      return "must be greater than 0";
    case Range::not_negative:
      return "must not be negative";
    case Range::below_one:
      return "must be at least 0 and less than 1";
  }
  return "";
}

}  // namespace

void require_in(Range range, double value, const std::string& argument) {
  if (!contains(range, value)) throw Error({.what = text_of(range), .where = argument});
}

}  // namespace acc::detail
