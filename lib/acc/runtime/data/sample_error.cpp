// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/sample_error.hpp"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <string>

#include "acc/base/error.hpp"

namespace acc {
namespace {

[[noreturn]] void throw_as_error(const std::string& where) {
  try {
    throw;
  } catch (const Error& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems)
      problem.where = problem.where.empty() ? where : fmt::format("{}, {}", where, problem.where);
    std::throw_with_nested(Error(error.kind(), std::move(problems)));
  } catch (const c10::Error& error) {
    std::throw_with_nested(
        Error({.kind = ErrorKind::system, .what = error.what_without_backtrace(), .where = where}));
  } catch (const std::exception& error) {
    std::throw_with_nested(Error({.kind = ErrorKind::system, .what = error.what(), .where = where}));
  }
}

}  // namespace

void throw_naming_sample(std::size_t index) {
  throw_as_error(fmt::format("sample {}", index));
}

void throw_naming_sample(c10::ArrayRef<std::size_t> indices,
                         const std::function<void(std::size_t)>& read_one) {
  if (indices.size() == 1) throw_naming_sample(indices.front());
  for (const std::size_t index : indices) {
    try {
      read_one(index);
    } catch (...) {
      throw_naming_sample(index);
    }
  }
  throw_as_error(fmt::format("a batch of {} samples, from sample {} on", indices.size(),
                             indices.empty() ? 0 : indices[0]));
}

}  // namespace acc
