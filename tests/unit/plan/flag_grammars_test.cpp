// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/flag_grammars.hpp"

#include <csignal>

#include "acc/plan/launch_plan.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace flag_grammars_test {

using acc::launcher::Endpoint;
using acc::launcher::parse_endpoint;
using acc::launcher::parse_retry_on;
using acc::launcher::parse_signals;
using acc::launcher::parse_stream_map;
using acc::launcher::RetryOn;
using acc::launcher::Streams;

TEST_CASE("endpoint: a host, with a port or without", "[plan]") {
  CHECK(parse_endpoint("node0", "") == Endpoint{"node0", {}});
  CHECK(parse_endpoint(" my-node_0.lan:29400 ", "") == Endpoint{"my-node_0.lan", 29400});
  CHECK(parse_endpoint("localhost:0", "") == Endpoint{"localhost", 0});
  CHECK(parse_endpoint("10.0.0.5:65535", "") == Endpoint{"10.0.0.5", 65535});
}

TEST_CASE("endpoint: an IPv6 address has brackets, or its last colon is the port's", "[plan]") {
  CHECK(parse_endpoint("[fe80::1]:29400", "") == Endpoint{"fe80::1", 29400});
  CHECK(parse_endpoint("[::1]", "") == Endpoint{"::1", {}});
  CHECK(parse_endpoint("::1:29400", "") == Endpoint{"::1", 29400});
  CHECK(parse_endpoint("fd12::1", "") == Endpoint{"fd12::1", {}});
  CHECK(parse_endpoint("fe80::1%eth0", "") == Endpoint{"fe80::1%eth0", {}});
  CHECK(parse_endpoint("1:2:3:4:5:6:7:8", "") == Endpoint{"1:2:3:4:5:6:7:8", {}});
  CHECK(parse_endpoint("fd12::1:2940", "") == Endpoint{"fd12::1", 2940});
}

TEST_CASE("endpoint: invalid text is refused, with its flag", "[plan]") {
  const auto error = [](const std::string& text) {
    return acc::test::error_of([&] { parse_endpoint(text, "--rdzv-endpoint"); });
  };
  const std::string hint = " (as in node0, node0:29400 or [fe80::1]:29400)";
  for (const auto* text : {"", ":29400", "a b:1", "http://node:1", "[]:1"}) {
    CHECK(error(text) == "--rdzv-endpoint: '" + std::string(text) + "' is not host:port" + hint);
  }
  for (const auto* text : {"node:", "node:x", "node:65536", "node:-1", "node:029400", "node:1.0"}) {
    CHECK(error(text) == "--rdzv-endpoint: '" + std::string(text) +
                             "' needs a port from 0 to 65535 after its last colon" + hint);
  }
}

TEST_CASE("streams: one digit applies to all ranks", "[plan]") {
  CHECK(parse_stream_map("3", "").streams_of(7) == Streams::both);
  CHECK(parse_stream_map("0", "").streams_of(0) == Streams::none);
}

TEST_CASE("streams: a map applies to the ranks that it lists", "[plan]") {
  const acc::launcher::StreamMap map = parse_stream_map("0:1,12:2,0:3", "");
  CHECK(map.streams_of(0) == Streams::both);
  CHECK(map.streams_of(12) == Streams::err);
  CHECK(map.streams_of(1) == Streams::none);
}

TEST_CASE("streams: anything else is an error that shows the form", "[plan]") {
  for (const auto* text : {"4", "x", "", "0:", ":1", "0:4", "0:1,", "-1:1"}) {
    const std::string error = acc::test::error_of([&] { parse_stream_map(text, "--tee"); });
    CHECK(error.starts_with("--tee: '" + std::string(text) + "' is neither"));
  }
}

TEST_CASE("streams: a filter is a list of ranks", "[plan]") {
  CHECK(acc::launcher::parse_ranks("0, 2", "") == std::vector<int>{0, 2});
  CHECK(acc::launcher::parse_ranks("1-3,10-10", "") == std::vector<int>{1, 2, 3, 10});
  CHECK(acc::launcher::parse_ranks("", "").empty());
  CHECK(acc::test::error_of([] {
          acc::launcher::parse_ranks("0,x", "--local-ranks-filter");
        }).starts_with("--local-ranks-filter: 'x'"));
  for (const auto* text : {"3-1", "-1", "1-", "0-9999999"}) {
    CHECK(acc::test::error_of([&] { acc::launcher::parse_ranks(text, "--ranks-filter"); }) ==
          "--ranks-filter: '" + std::string(text) + "' is not a rank (as in 0,2,5 or 0-3)");
  }
  CHECK(acc::test::error_of([] { acc::launcher::parse_ranks("0-1048574,7,0-1", "--ranks-filter"); }) ==
        "--ranks-filter: names more than 1048576 ranks");
}

TEST_CASE("streams: words are separated by commas, two commas are one in a word", "[plan]") {
  using Words = std::vector<std::string>;
  CHECK(acc::launcher::parse_words("apple, pear") == Words{"apple", " pear"});
  CHECK(acc::launcher::parse_words("zz,,z") == Words{"zz,z"});
  CHECK(acc::launcher::parse_words("a,,,b") == Words{"a,", "b"});
  CHECK(acc::launcher::parse_words("").empty());
  CHECK(acc::launcher::parse_words("a,") == Words{"a"});
}

TEST_CASE("signals: whole names, with blanks or without", "[plan]") {
  CHECK(parse_signals("SIGTERM, SIGUSR1 ,SIGXCPU", "") == std::vector<int>{SIGTERM, SIGUSR1, SIGXCPU});
  CHECK(acc::launcher::signal_number("SIGINT") == SIGINT);
  CHECK(acc::launcher::signal_number("INT") == 0);
  CHECK(parse_signals("SIGIO,SIGPOLL,SIGRTMIN,SIGRTMAX", "") ==
        std::vector<int>{SIGIO, SIGIO, SIGRTMIN, SIGRTMAX});
}

TEST_CASE("signals: signals that cannot be handled are refused with the flag", "[plan]") {
  const auto error = [](const std::string& text) {
    return acc::test::error_of([&] { parse_signals(text, "--signals-to-handle"); });
  };
  CHECK(error("SIGTERM,USR1") ==
        "--signals-to-handle: 'USR1' is not the name of a signal (did you mean 'SIGUSR1'?)");
  CHECK(error("SIGTRM").find("did you mean") != std::string::npos);
  CHECK(error("SIGRTMN").ends_with("(did you mean 'SIGRTMIN'?)"));
  CHECK(error("RTMAX").ends_with("(did you mean 'SIGRTMAX'?)"));
  CHECK(error("IO").ends_with("(did you mean 'SIGIO'?)"));
  CHECK(error("") == "--signals-to-handle: '' is not the name of a signal (as in SIGTERM,SIGUSR1)");
  for (const auto* name : {"SIGKILL", "SIGSTOP", "SIGCHLD", "SIGCLD", "SIGIOT", "SIGSEGV"}) {
    CHECK(error(name) == "--signals-to-handle: " + std::string(name) +
                             " cannot be used to end the job (as in SIGTERM,SIGUSR1)");
  }
}

TEST_CASE("retry_on: only listed failures are restarted", "[plan]") {
  CHECK(
      parse_retry_on("1, 64-66,SIGKILL,oom", "") ==
      RetryOn{.all = false, .included = {.exit_codes = {1, 64, 65, 66}, .signals = {SIGKILL}, .oom = true}});
  CHECK(parse_retry_on("signal", "") == RetryOn{.all = false, .included = {.any_signal = true}});
}

TEST_CASE("retry_on: with exclusions only, all other failures are restarted", "[plan]") {
  CHECK(parse_retry_on("!2,!SIGSEGV", "") == RetryOn{.excluded = {.exit_codes = {2}, .signals = {SIGSEGV}}});
  CHECK(parse_retry_on("all,!oom", "") == RetryOn{.excluded = {.oom = true}});
  CHECK(parse_retry_on("all", "") == RetryOn{});
}

TEST_CASE("retry_on: unknown kinds of failure are refused", "[plan]") {
  for (const auto* text : {"", "0", "256", "9-3", "KILL", "1,", "!", "!all", "x"}) {
    CHECK(acc::test::error_of([&] { parse_retry_on(text, "--retry-on"); }).find("is not a kind of failure") !=
          std::string::npos);
  }
  CHECK(
      acc::test::error_of([] { parse_retry_on("0", "--retry-on"); }) ==
      "--retry-on: '0' is not a kind of failure (exit codes, names of signals, signal, oom, all; ! in front "
      "excludes, as "
      "in signal,!SIGSEGV,75)");
}

}  // namespace flag_grammars_test
