// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/job_secret.hpp"

#include <fstream>

#include "acc/plan/rendezvous_plan.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace job_secret_test {

using namespace acc;
using namespace acc::launcher;
using Side = JobSecret::Side;

namespace {

constexpr const char* kText = "0123456789abcdef";
const JobSecret::Challenge kChallenge = {.run_id = "job7", .dialer_nonce = "d", .listener_nonce = "l"};

}  // namespace

TEST_CASE("job_secret: a proof is valid for one connection, one side and one job", "[rendezvous]") {
  const JobSecret secret(kText, "");
  const std::string proof = secret.proof(Side::dialer, kChallenge);
  CHECK(JobSecret(kText, "").is_proof(proof, Side::dialer, kChallenge));
  CHECK_FALSE(JobSecret("0123456789abcdeF", "").is_proof(proof, Side::dialer, kChallenge));
  CHECK_FALSE(secret.is_proof(proof, Side::listener, kChallenge));
  JobSecret::Challenge challenge = kChallenge;
  SECTION("another job") {
    challenge.run_id = "job8";
  }
  SECTION("another dialer's number") {
    challenge.dialer_nonce = "e";
  }
  SECTION("another listener's number") {
    challenge.listener_nonce = "m";
  }
  SECTION("the same letters, cut elsewhere") {
    challenge = {.run_id = "job", .dialer_nonce = "7d", .listener_nonce = "l"};
  }
  CHECK_FALSE(secret.is_proof(proof, Side::dialer, challenge));
}

TEST_CASE("job_secret: a truncated, empty or extended proof is invalid", "[rendezvous]") {
  const JobSecret secret(kText, "");
  const std::string proof = secret.proof(Side::dialer, kChallenge);
  for (const std::string& text : {std::string(), proof.substr(1), proof + "0"})
    CHECK_FALSE(secret.is_proof(text, Side::dialer, kChallenge));
  CHECK(proof.find(kText) == std::string::npos);
}

TEST_CASE("job_secret: nonces differ", "[rendezvous]") {
  CHECK(draw_nonce().size() == 64);
  CHECK(draw_nonce() != draw_nonce());
}

TEST_CASE("job_secret: comes from the plan's variable or file", "[rendezvous]") {
  CHECK_FALSE(job_secret({}));
  const std::string proof = JobSecret(kText, "").proof(Side::dialer, kChallenge);
  CHECK(job_secret({.secret = kText}).proof(Side::dialer, kChallenge) == proof);
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "secret";
  std::ofstream(file) << kText << "\n";
  CHECK(job_secret({.secret_file = file}).proof(Side::dialer, kChallenge) == proof);
}

TEST_CASE("job_secret: an unreadable or short secret is refused, and not printed", "[rendezvous]") {
  CHECK(test::error_of([] { job_secret({.secret = ""}); }) ==
        "ACC_JOB_SECRET: the secret has less than 16 bytes and can be guessed (make one with: openssl rand "
        "-hex 32 > secret)");
  CHECK(test::error_of([] { job_secret({.secret = "hunter2"}); }).find("hunter2") == std::string::npos);
  CHECK(test::error_of([] { job_secret({.secret_file = "/no/such/file"}); }).find("/no/such/file") == 0);
}

}  // namespace job_secret_test
