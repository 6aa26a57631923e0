// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/hang_agreement.hpp"

#include "support/catch.hpp"

namespace hang_agreement_test {

using namespace acc;
using namespace acc::launcher;

namespace {

using Answer = std::optional<JobHang>;
using enum NodeHangStage;

/// A round of three nodes.
struct Job {
  explicit Job(bool is_whole = true) { agreement.begin({0, 1, 2}, is_whole); }

  Answer say(int node, NodeHangStage stage, int number = 0) {
    return agreement.on_message(node, {.stage = stage, .number = number});
  }
  /// All say the same; returns what follows the last.
  Answer all_say(NodeHangStage stage, int number = 0) {
    CHECK_FALSE(say(2, stage, number));
    CHECK_FALSE(say(0, stage, number));
    return say(1, stage, number);
  }

  HangAgreement agreement;
};

}  // namespace

TEST_CASE("hang_agreement: a job hangs when all nodes are idle, and is stopped when all have looked",
          "[rendezvous]") {
  Job job;
  CHECK(job.all_say(idle) == Answer({.stage = JobHangStage::suspected, .number = 1}));
  CHECK(job.all_say(confirmed, 1) == Answer({.stage = JobHangStage::found, .number = 1}));
  CHECK(job.all_say(examined, 1) == Answer({.stage = JobHangStage::examined, .number = 1}));
}

TEST_CASE("hang_agreement: a node that is active again takes back that it was idle", "[rendezvous]") {
  Job job;
  CHECK_FALSE(job.say(0, idle));
  CHECK_FALSE(job.say(1, idle));
  CHECK_FALSE(job.say(0, active));
  CHECK_FALSE(job.say(2, idle));
  CHECK(job.say(0, idle) == Answer({.stage = JobHangStage::suspected, .number = 1}));
}

TEST_CASE("hang_agreement: what a node said before it is asked again does not count", "[rendezvous]") {
  Job job;
  job.all_say(idle);
  CHECK_FALSE(job.say(0, confirmed, 1));
  CHECK_FALSE(job.say(1, confirmed, 1));
  CHECK_FALSE(job.say(2, active));  // was on its way when node 2 was asked
  CHECK_FALSE(job.say(2, confirmed, 1));
  CHECK(job.say(2, idle) == Answer({.stage = JobHangStage::suspected, .number = 2}));
  CHECK_FALSE(job.all_say(confirmed, 1));
  CHECK(job.all_say(confirmed, 2) == Answer({.stage = JobHangStage::found, .number = 2}));
}

TEST_CASE("hang_agreement: a node that does not answer counts as active", "[rendezvous]") {
  Job job;
  job.all_say(idle);
  CHECK_FALSE(job.say(0, confirmed, 1));
  CHECK_FALSE(job.say(1, confirmed, 1));
  CHECK_FALSE(job.say(1, confirmed, 1));
  CHECK_FALSE(job.say(1, idle));
}

TEST_CASE("hang_agreement: a hang is found again only after a node was active", "[rendezvous]") {
  const bool during_examination = GENERATE(true, false);
  Job job;
  job.all_say(idle);
  job.all_say(confirmed, 1);
  if (during_examination) CHECK_FALSE(job.say(2, active));
  job.all_say(examined, 1);
  CHECK_FALSE(job.say(0, idle));
  if (!during_examination) CHECK_FALSE(job.say(2, active));
  CHECK(job.say(2, idle) == Answer({.stage = JobHangStage::suspected, .number = 2}));
}

TEST_CASE("hang_agreement: nodes whose workers have succeeded are not waited for", "[rendezvous]") {
  Job job;
  CHECK_FALSE(job.say(0, idle));
  CHECK_FALSE(job.say(1, idle));
  CHECK(job.agreement.on_success(2) == Answer({.stage = JobHangStage::suspected, .number = 1}));
  CHECK_FALSE(job.say(0, confirmed, 1));
  CHECK(job.agreement.on_success(1) == Answer({.stage = JobHangStage::found, .number = 1}));
  CHECK_FALSE(job.say(1, idle));
  CHECK_FALSE(job.agreement.on_success(0));
}

TEST_CASE("hang_agreement: where some nodes cannot say that they are idle, nobody knows", "[rendezvous]") {
  Job job(false);
  CHECK(job.all_say(idle) == Answer({.stage = JobHangStage::unknown, .number = 0}));
  CHECK_FALSE(job.say(1, idle));
  CHECK_FALSE(job.say(1, active));
  CHECK(job.say(1, idle) == Answer({.stage = JobHangStage::unknown, .number = 0}));
}

TEST_CASE("hang_agreement: a new round knows nothing of the last", "[rendezvous]") {
  Job job;
  CHECK_FALSE(job.say(0, idle));
  job.agreement.begin({0, 1}, true);
  CHECK_FALSE(job.say(2, idle));
  CHECK_FALSE(job.say(1, idle));
  CHECK(job.say(0, idle) == Answer({.stage = JobHangStage::suspected, .number = 1}));
}

}  // namespace hang_agreement_test
