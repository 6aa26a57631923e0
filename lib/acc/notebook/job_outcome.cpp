// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/job_outcome.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "acc/base/byte_reader.hpp"

namespace acc::detail {

std::string text_of_outcome(const std::optional<Error>& failure) {
  std::string text;
  append_number(text, static_cast<std::int32_t>(failure ? failure->kind() : ErrorKind::usage));
  if (!failure) return text;
  for (const Problem& problem : failure->problems())
    for (const std::string& part : {problem.what, problem.where, problem.hint}) append_text(text, part);
  return text;
}

std::optional<Error> read_outcome(std::string_view text) {
  ByteReader reader(text, "notebook_launcher");
  const auto kind = reader.number<std::int32_t>();
  if (kind < 0 || kind > static_cast<std::int32_t>(ErrorKind::rendezvous)) reader.fail();
  std::vector<Problem> problems;
  while (!reader.is_at_end()) {
    Problem& problem = problems.emplace_back();
    for (std::string* part : {&problem.what, &problem.where, &problem.hint}) *part = reader.text();
  }
  if (problems.empty()) return std::nullopt;
  return Error(static_cast<ErrorKind>(kind), std::move(problems));
}

}  // namespace acc::detail
