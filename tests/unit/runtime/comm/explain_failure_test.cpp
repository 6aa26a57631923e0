// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/explain_failure.hpp"

#include "support/catch.hpp"

namespace explain_failure_test {

namespace {

using namespace std::chrono_literals;

const acc::detail::CollectiveContext kContext{
    .rank = 3, .size = 8, .doing = "backward", .timeout = 5s, .peers = {}};
constexpr std::string_view kClosed = "Connection closed by peer [127.0.0.1]:32876";

std::string what(std::string_view text, const acc::detail::CollectiveContext& context) {
  const auto error = acc::detail::explain_collective_failure(text, context);
  return error ? error->problems().front().what : "nothing";
}

}  // namespace

TEST_CASE("collective_failure: a lost peer is reported without source positions", "[runtime]") {
  const auto error = acc::detail::explain_collective_failure(
      "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer "
      "[127.0.0.1]:32876\nmore",
      kContext);
  REQUIRE(error.has_value());
  CHECK(std::string(error->what()) ==
        "rank 3, backward: another process ended or was lost: Connection closed by peer [127.0.0.1]:32876 "
        "(the process that failed first reports the cause)");
}

TEST_CASE("collective_failure: a timeout reports the time and the option", "[runtime]") {
  const auto error = acc::detail::explain_collective_failure(
      "[/x/unbound_buffer.cc:78] Timed out waiting 5000ms for recv operation to complete", kContext);
  REQUIRE(error.has_value());
  CHECK(error->problems().front().what == "no answer from another process within 5 s");
}

TEST_CASE("collective_failure: what NCCL's watchdog says is a lost peer or a timeout", "[runtime]") {
  const std::string watchdog =
      "[PG ID 0 PG GUID 0(default_pg) Rank 3] Process group watchdog thread terminated with exception: ";
  CHECK(what(watchdog +
                 "NCCL error: remote process exited or there was a network error, NCCL version 2.28.9\nmore",
             kContext) ==
        "another process ended or was lost: NCCL error: remote process exited or there was a network error, "
        "NCCL "
        "version 2.28.9");
  acc::detail::CollectiveContext context = kContext;
  context.peers = acc::detail::PeerReport{.absent = {1}};
  const std::string timed_out =
      watchdog +
      "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE) ran "
      "for 10075 milliseconds before timing out.";
  CHECK(what(timed_out, context) == "no answer from rank 1 within 5 s");
  context.peers = acc::detail::PeerReport{.phases = {{3, "after all_reduce"}, {5, "after broadcast"}}};
  CHECK(what(timed_out, context) == "no answer from another process within 5 s; rank 5 is after broadcast");
}

TEST_CASE("collective_failure: a call after the watchdog's abort names the lost process", "[runtime]") {
  acc::detail::CollectiveContext context = kContext;
  context.peers = acc::detail::PeerReport{.absent = {1}};
  CHECK(what("NCCL communicator was aborted on rank 3.", context) ==
        "rank 1 ended or was lost: NCCL communicator was aborted on rank 3.");
  context.peers = acc::detail::PeerReport{.phases = {{3, "after all_reduce"}, {5, "after broadcast"}}};
  CHECK(what("NCCL communicator was aborted on rank 3.", context) ==
        "another process gave up; rank 5 is after broadcast");
}

TEST_CASE("collective_failure: with two processes the other one is named as lost", "[runtime]") {
  acc::detail::CollectiveContext context = kContext;
  context.rank = 1;
  context.size = 2;
  CHECK(what(kClosed, context) == "rank 0 ended or was lost: Connection closed by peer [127.0.0.1]:32876");
  CHECK(what("Timed out waiting", context) == "no answer from rank 0 within 5 s");
}

TEST_CASE("collective_failure: a process that does not answer is named as lost", "[runtime]") {
  acc::detail::CollectiveContext context = kContext;
  context.peers = acc::detail::PeerReport{.absent = {1, 6},
                                          .late = {{.rank = 2, .calls_behind = 1, .phase = "in forward"}}};
  CHECK(what(kClosed, context) ==
        "ranks 1, 6 ended or were lost: Connection closed by peer [127.0.0.1]:32876");
  CHECK(what("Timed out waiting", context) ==
        "no answer from ranks 1, 2, 6 within 5 s; rank 2 is in forward, 1 call behind");
}

TEST_CASE("collective_failure: in a job of thousands the line stays one that a person reads", "[runtime]") {
  acc::detail::CollectiveContext context = kContext;
  context.size = 2048;
  acc::detail::PeerReport peers;
  for (int rank = 0; rank < 2048; ++rank) peers.phases[rank] = rank == 3 ? "in forward" : "in backward";
  context.peers = peers;
  const std::string first = "ranks 0-2, 4-2047";
  CHECK(what(kClosed, context) == "another process gave up; " + first + " are in backward");
  for (int rank = 0; rank < 2048; ++rank) {
    if (rank != 3) context.peers->late.push_back({.rank = rank, .calls_behind = 1, .phase = "in backward"});
  }
  CHECK(what("Timed out waiting", context) ==
        "no answer from " + first + " within 5 s; " + first + " are in backward, 1 call behind");
  context.peers->late.clear();
  for (int rank = 1024; rank < 2048; ++rank) context.peers->absent.push_back(rank);
  CHECK(what(kClosed, context).starts_with("ranks 1024-2047 ended"));
}

TEST_CASE("collective_failure: a late process is named, also when another gave up waiting for it",
          "[runtime]") {
  acc::detail::CollectiveContext context = kContext;
  context.peers = acc::detail::PeerReport{.absent = {},
                                          .late = {{.rank = 2, .calls_behind = 3, .phase = "after forward"}}};
  CHECK(what("Timed out waiting", context) ==
        "no answer from rank 2 within 5 s; rank 2 is after forward, 3 calls behind");
  CHECK(what(kClosed, context) ==
        "another process gave up waiting for rank 2; rank 2 is after forward, 3 calls behind");
}

TEST_CASE("collective_failure: different calls are told with the positions of the ranks that are elsewhere",
          "[runtime]") {
  acc::detail::CollectiveContext context = kContext;
  const std::string compares = "in comparison of parameters, since 'head.weight' was frozen";
  context.peers = acc::detail::PeerReport{
      .absent = {}, .late = {}, .phases = {{1, compares}, {2, "in backward"}, {3, "in backward"}}};
  CHECK(what("the processes do not make the same calls: rank 3 calls a, rank 1 calls b", context) ==
        "the processes do not make the same calls: rank 3 calls a, rank 1 calls b; rank 1 is " + compares);
  CHECK(what(kClosed, context) == "another process gave up; rank 1 is " + compares);
}

TEST_CASE("collective_failure: other exceptions are not translated", "[runtime]") {
  CHECK_FALSE(acc::detail::explain_collective_failure("mat1 and mat2 shapes cannot be multiplied", kContext)
                  .has_value());
}

TEST_CASE("collective_failure: a port in use and an absent rank 0 are distinguished", "[runtime]") {
  const acc::Error in_use = acc::detail::explain_join_failure(
      "The server socket has failed to listen. port: 29500, name: EADDRINUSE", kContext, "h:1");
  CHECK(in_use.kind() == acc::ErrorKind::system);
  CHECK(in_use.problems().front().what == "h:1 is in use by another program");
  const acc::Error absent = acc::detail::explain_join_failure(
      "The client socket has timed out after 5000ms\nBacktrace", kContext, "h:1");
  CHECK(absent.kind() == acc::ErrorKind::rendezvous);
  CHECK(absent.problems().front().what ==
        "did not find the other processes through the store at h:1 within 5 s: The client socket has timed "
        "out after 5000ms");
  const acc::Error missing = acc::detail::explain_join_failure(
      "wait timeout after 5000ms, keys: /default_pg/0//cpu//0/1", kContext, "h:1");
  CHECK(missing.problems().front().what ==
        "did not find the other processes through the store at h:1 within 5 s: wait timeout after 5000ms, "
        "keys: /default_pg/0//cpu//0/1");
}

TEST_CASE("collective_failure: an unknown network interface is named", "[runtime]") {
  const acc::Error error = acc::detail::explain_join_failure(
      "[enforce fail at /x/device.cc:84] ifa != nullptr. Unable to find address for: nosuch0", kContext,
      "h:1");
  CHECK(std::string(error.what()) ==
        "GLOO_SOCKET_IFNAME: nosuch0 is not a network interface with an address (`ip address` lists them)");
}

TEST_CASE("collective_failure: a process that ended while others joined is reported", "[runtime]") {
  const acc::Error error = acc::detail::explain_join_failure(
      "Failed to recv, got 0 bytes. Connection was likely closed.", kContext, "h:1");
  CHECK(error.problems().front().what ==
        "another process ended before all had joined at h:1: Failed to recv, got 0 bytes. Connection was "
        "likely closed.");
}

TEST_CASE("collective_failure: positions and conditions of LibTorch's sources are left out", "[runtime]") {
  CHECK(acc::detail::first_line("[/a/b.cc:1] text [x] y\nmore") == "text [x] y");
  CHECK(acc::detail::first_line("[enforce fail at /a/b.cc:1] a != b. text") == "text");
  CHECK(acc::detail::first_line("plain [x] text") == "plain [x] text");
}

TEST_CASE("unused_parameters: they are named by their index among the trained ones", "[runtime]") {
  const std::vector<std::string> trained = {"0.bias", "1.weight", "1.bias", "2.weight", "2.bias"};
  const auto error = acc::detail::explain_unused_parameters(
      "Expected to have finished reduction in the prior iteration before starting a new one. ...\n"
      "Parameter indices which did not receive grad for rank 1: 0 3\n In addition, 1 2 3",
      trained, "rank 1, Net");
  REQUIRE(error.has_value());
  CHECK(
      std::string(error->what()) ==
      "rank 1, Net: did not contribute to the last loss, so the processes cannot average their gradients: "
      "0.bias, 2.weight (set DdpOptions::find_unused_parameters, or use every parameter in each forward, or "
      "freeze it with requires_grad_(false) before the forward)");
}

TEST_CASE("unused_parameters: what to do depends on the options that are set", "[runtime]") {
  const auto hint_of = [](const std::string& option) {
    const auto error = acc::detail::explain_unused_parameters(
        "Expected to have finished reduction in the prior iteration before starting a new one. " + option,
        {"weight"}, "rank 1, Net");
    return error.value().problems().front().hint;
  };
  CHECK(hint_of("Since `find_unused_parameters=True` is enabled, this likely  means that") ==
        "give backward no inputs, or all parameters on which the outputs depend");
  CHECK(hint_of("this is not compatible with static_graph set to True.") ==
        "set DdpOptions::find_unused_parameters instead of static_graph, or use the same parameters in each "
        "step");
}

TEST_CASE("unused_parameters: a message without a list is translated, other messages are not", "[runtime]") {
  const std::vector<std::string> trained = {"weight"};
  const auto error = acc::detail::explain_unused_parameters(
      "Expected to have finished reduction in the prior", trained, "rank 0");
  REQUIRE(error.has_value());
  CHECK(error->problems().front().what.ends_with(": some parameters"));
  CHECK_FALSE(
      acc::detail::explain_unused_parameters("Connection closed by peer", trained, "rank 0").has_value());
}

}  // namespace explain_failure_test
