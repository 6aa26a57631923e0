// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/job_secret.hpp"

#include <fstream>

#include "acc/plan/rendezvous_plan.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

using namespace acc;
using namespace acc::launcher;
using Side = JobSecret::Side;

namespace {

constexpr const char* kText = "0123456789abcdef";
const JobSecret::Challenge kChallenge = {.run_id = "job7", .of_dialer = "d", .of_listener = "l"};

}  // namespace

TEST_CASE("job_secret: who knows it proves it, for one connection, one side and one job", "[rendezvous]") {
  const JobSecret secret(kText, "");
  const std::string proof = secret.proof(Side::dialer, kChallenge);
  CHECK(JobSecret(kText, "").is_proof(proof, Side::dialer, kChallenge));
  CHECK_FALSE(JobSecret("0123456789abcdeF", "").is_proof(proof, Side::dialer, kChallenge));
  CHECK_FALSE(secret.is_proof(proof, Side::listener, kChallenge));
  JobSecret::Challenge other = kChallenge;
  SECTION("another job") {
    other.run_id = "job8";
  }
  SECTION("another dialer's number") {
    other.of_dialer = "e";
  }
  SECTION("another listener's number") {
    other.of_listener = "m";
  }
  SECTION("the same letters, cut elsewhere") {
    other = {.run_id = "job", .of_dialer = "7d", .of_listener = "l"};
  }
  CHECK_FALSE(secret.is_proof(proof, Side::dialer, other));
}

TEST_CASE("job_secret: half a proof, none and more are none", "[rendezvous]") {
  const JobSecret secret(kText, "");
  const std::string proof = secret.proof(Side::dialer, kChallenge);
  for (const std::string& text : {std::string(), proof.substr(1), proof + "0"})
    CHECK_FALSE(secret.is_proof(text, Side::dialer, kChallenge));
  CHECK(proof.find(kText) == std::string::npos);
}

TEST_CASE("job_secret: no number is drawn twice", "[rendezvous]") {
  CHECK(draw_nonce().size() == 64);
  CHECK(draw_nonce() != draw_nonce());
}

TEST_CASE("job_secret: that of the plan: its variable's, its file's, or none", "[rendezvous]") {
  CHECK_FALSE(job_secret({}));
  const std::string proof = JobSecret(kText, "").proof(Side::dialer, kChallenge);
  CHECK(job_secret({.secret = kText}).proof(Side::dialer, kChallenge) == proof);
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "secret";
  std::ofstream(file) << kText << "\n";
  CHECK(job_secret({.secret_file = file}).proof(Side::dialer, kChallenge) == proof);
}

TEST_CASE("job_secret: what cannot be read or is too short is refused, and not repeated", "[rendezvous]") {
  CHECK(
      test::error_of([] { job_secret({.secret = ""}); }) ==
      "ACC_JOB_SECRET: a secret of less than 16 bytes can be guessed (as in: openssl rand -hex 32 > secret)");
  CHECK(test::error_of([] { job_secret({.secret = "hunter2"}); }).find("hunter2") == std::string::npos);
  CHECK(test::error_of([] { job_secret({.secret_file = "/no/such/file"}); }).find("/no/such/file") == 0);
}
