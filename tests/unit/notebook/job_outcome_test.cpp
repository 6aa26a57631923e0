// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/job_outcome.hpp"

#include "acc/base/byte_reader.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace job_outcome_test {

using acc::Error;
using acc::ErrorKind;
using acc::detail::read_outcome;
using acc::detail::text_of_outcome;

TEST_CASE("job_outcome: the caller gets the failure with its kind and all problems", "[notebook]") {
  const Error failure(ErrorKind::rendezvous, {{"is empty", "data", ""}, {"is gone", "rank 1", "start it"}});
  const auto read = read_outcome(text_of_outcome(failure));
  REQUIRE(read);
  CHECK(read->kind() == ErrorKind::rendezvous);
  CHECK((read->problems() == failure.problems()));
  CHECK_FALSE(read_outcome(text_of_outcome(std::nullopt)));
}

TEST_CASE("job_outcome: another kind, or a part of it, is refused", "[notebook]") {
  const auto refusal = [](std::string_view text) { return acc::test::error_of([&] { read_outcome(text); }); };
  const std::string damaged = "notebook_launcher: what another process sent is damaged";
  const std::string text = text_of_outcome(Error({.what = "is empty", .where = "data"}));
  CHECK(refusal("").starts_with(damaged));
  CHECK(refusal(text.substr(0, text.size() - 1)).starts_with(damaged));
  std::string unknown;
  acc::append_number(unknown, std::int32_t{4});
  CHECK(refusal(unknown).starts_with(damaged));
  unknown.clear();
  acc::append_number(unknown, std::int32_t{-1});
  CHECK(refusal(unknown).starts_with(damaged));
}

}  // namespace job_outcome_test
