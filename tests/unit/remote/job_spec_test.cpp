// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/job_spec.hpp"

#include "support/catch.hpp"

namespace job_spec_test {

using acc::ErrorKind;
using acc::launcher::Dialect;
using acc::launcher::HostReady;
using acc::launcher::JobSpec;
using acc::launcher::meeting_address;
using acc::launcher::Refusal;
using acc::launcher::StartOrder;

TEST_CASE("job_spec: what is sent comes back, whatever bytes it has", "[remote]") {
  JobSpec spec = {.version = "acc 1.2",
                  .dialect = Dialect::torchrun,
                  .replaced = "torchrun",
                  .words = {"--hosts", "a,b", "tr\xffin.py", "ü 'x' \"y\""},
                  .folder = "/home/me/a b\xfe",
                  .environment = {{"NCCL_DEBUG", "INFO\n"}, {"ACC_JOB_SECRET", "s3cret"}}};
  spec.config = {.path = "/etc/job.yaml", .text = "num_processes: 2\n"};
  spec.silence = std::chrono::seconds(7);
  spec.host.engine = {.family = acc::EngineFamily::hosts,
                      .name = "--hosts",
                      .rank = acc::EngineValue<int>{1, "b, number 2"},
                      .size = acc::EngineValue<int>{2, "--hosts"},
                      .node_rank = acc::EngineValue<int>{1, "b, number 2"},
                      .num_nodes = acc::EngineValue<int>{2, "--hosts"},
                      .node = "b",
                      .master_addr = acc::EngineValue<std::string>{"a", "first"}};
  spec.host.slots = {4, "b:4"};
  const JobSpec back = acc::launcher::parse_job_spec(to_json(spec));
  CHECK(back.version == spec.version);
  CHECK(back.dialect == spec.dialect);
  CHECK(back.words == spec.words);
  CHECK(back.folder == spec.folder);
  CHECK(back.environment == spec.environment);
  CHECK(back.config == spec.config);
  CHECK(back.silence == spec.silence);
  CHECK(back.host.engine == spec.host.engine);
  CHECK(back.host.slots == spec.host.slots);
  CHECK(back.host.all_slots == spec.host.all_slots);
  CHECK(acc::launcher::version_of_spec(to_json(spec)) == "acc 1.2");
}

TEST_CASE("job_spec: the answers of a host come back", "[remote]") {
  const HostReady ready = {.host_name = "n1",
                           .addresses = {"10.0.0.2", "fd00::2"},
                           .client = "10.0.0.1",
                           .port = 23456,
                           .grace = std::chrono::seconds(60)};
  CHECK(acc::launcher::parse_host_ready(to_json(ready)) == ready);
  const Refusal refusal = {ErrorKind::system, {{"no such file", "x.py", "look"}}};
  CHECK(acc::launcher::parse_refusal(to_json(refusal)) == refusal);
  const StartOrder order = {.address = "10.0.0.2", .port = 1, .run_id = "run"};
  CHECK(acc::launcher::parse_start_order(to_json(order)) == order);
}

TEST_CASE("job_spec: so do those with bytes that are not UTF-8", "[remote]") {
  const HostReady ready = {.host_name = "n\xff", .addresses = {"\xfe"}, .client = "\xfd", .port = 1};
  CHECK(acc::launcher::parse_host_ready(to_json(ready)) == ready);
  const StartOrder order = {.address = "a\xff",
                            .port = 1,
                            .run_id =
                                "r\xfc"
                                "n"};
  CHECK(acc::launcher::parse_start_order(to_json(order)) == order);
}

TEST_CASE("job_spec: an exit code is one", "[remote]") {
  CHECK(acc::launcher::parse_exit_code("0") == 0);
  CHECK(acc::launcher::parse_exit_code("255") == 255);
  for (const char* text : {"256", "-1", "", "x"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(acc::launcher::parse_exit_code(text), acc::Error);
  }
}

TEST_CASE("job_spec: what another program sends is an error, and has no version", "[remote]") {
  for (const char* text : {"", "[1]", "{}", R"({"acc": 1})", "\xff"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(acc::launcher::parse_job_spec(text), acc::Error);
    CHECK(acc::launcher::version_of_spec(text).empty());
  }
}

TEST_CASE("job_spec: the nodes meet at an address of the first that others reach", "[remote]") {
  const HostReady first = {.host_name = "n1",
                           .addresses = {"127.0.0.1", "fe80::1%eth0", "192.168.0.1", "10.0.0.1"}};
  const HostReady second = {.host_name = "n2", .addresses = {"10.0.0.2"}};
  CHECK(meeting_address({first, second}) == "192.168.0.1");
  // The second was reached from an address of the first, where the job is started.
  HostReady reached = second;
  reached.client = "10.0.0.1";
  CHECK(meeting_address({first, reached}) == "10.0.0.1");
  // From a third machine.
  reached.client = "10.0.0.9";
  CHECK(meeting_address({first, reached}) == "192.168.0.1");
  // Names for one machine.
  CHECK(meeting_address({first, {.host_name = "n1", .addresses = {"127.0.0.1"}}}) == "127.0.0.1");
}

TEST_CASE("job_spec: a number that its field cannot hold is an error, not another number", "[remote]") {
  for (const std::string port : {"65537", "-1", "1e300", "1.5", "true"}) {
    const std::string order = R"({"address":"a","run_id":"r","port":)" + port + "}";
    CHECK_THROWS_AS(acc::launcher::parse_start_order(order), acc::Error);
  }
}

TEST_CASE("job_spec: an error does not repeat a message of megabytes", "[remote]") {
  try {
    acc::launcher::parse_start_order("{\"address\":\"" + std::string(1'000'000, 'x'));
    FAIL("is not refused");
  } catch (const acc::Error& error) {
    CHECK(std::string(error.what()).size() < 300);
  }
}

}  // namespace job_spec_test
