// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/etcd_coordinator_key.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <optional>
#include <utility>

#include "support/catch.hpp"
#include "support/drive.hpp"
#include "support/fake_etcd.hpp"

namespace etcd_coordinator_key_test {

using namespace acc;
using namespace acc::launcher;
using ClaimResult = EtcdCoordinatorKey::ClaimResult;
using Outcome = ClaimResult::Outcome;

namespace {

// A gateway to an etcd without a network.
class FakeGateway : public EtcdGateway {
 public:
  FakeGateway(boost::asio::io_context& loop, test::FakeEtcd& etcd) : loop_(loop), etcd_(etcd) {}

  void post(const EtcdRequest& request, Handler handler) override {
    boost::asio::post(loop_,
                      [this, request, handler = std::move(handler)] { handler(etcd_.answer(request)); });
  }

 private:
  boost::asio::io_context& loop_;
  test::FakeEtcd& etcd_;
};

// Nodes at one etcd.
struct Etcd {
  struct Node {
    explicit Node(Etcd& the_etcd)
        : etcd(the_etcd),
          coordinator(the_etcd.loop, the_etcd.gateway, "/p/job7/hub",
                      [this](const auto& address, bool has_lapsed) {
                        new_owner = address;
                        return has_lapsed ? if_lapsed : EtcdCoordinatorKey::Loss::accept;
                      }) {}

    ClaimResult claim(const std::string& address, const std::string& replaced_address = "") {
      std::optional<ClaimResult> result;
      coordinator.claim(address, replaced_address, [&](const ClaimResult& claim) { result = claim; });
      test::drive(etcd.loop, [&] { return result.has_value(); });
      return *result;
    }
    ClaimResult find() {
      std::optional<ClaimResult> result;
      coordinator.find([&](const ClaimResult& reading) { result = reading; });
      test::drive(etcd.loop, [&] { return result.has_value(); });
      return *result;
    }
    void release() {
      bool done = false;
      coordinator.release([&] { done = true; });
      test::drive(etcd.loop, [&] { return done; });
    }

    Etcd& etcd;
    std::string new_owner = {};
    EtcdCoordinatorKey::Loss if_lapsed = EtcdCoordinatorKey::Loss::accept;
    EtcdCoordinatorKey coordinator;
  };

  std::string value() const { return fake.value("/p/job7/hub"); }

  boost::asio::io_context loop;
  test::FakeEtcd fake;
  FakeGateway gateway{loop, fake};
};

}  // namespace

TEST_CASE("etcd_coordinator_key: a key for each run, below the prefix", "[rendezvous]") {
  CHECK(etcd_coordinator_key("/acc/rendezvous", "job7") == "/acc/rendezvous/job7/hub");
  CHECK(etcd_coordinator_key("/p/", "job7") == "/p/job7/hub");
  CHECK(etcd_coordinator_key("/", "job7") == "/job7/hub");
}

TEST_CASE("etcd_coordinator_key: the first hosts, the others are told where", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  Etcd::Node second(etcd);
  CHECK(first.claim("n0:1") == ClaimResult{Outcome::acquired});
  CHECK(second.claim("n1:1") == ClaimResult{Outcome::held, "n0:1"});
  CHECK(etcd.value() == "n0:1");
}

TEST_CASE("etcd_coordinator_key: find() does not host", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  Etcd::Node second(etcd);
  CHECK(second.find() == ClaimResult{Outcome::failed, "nobody hosts the job"});
  CHECK(first.claim("n0:1") == ClaimResult{Outcome::acquired});
  CHECK(second.find() == ClaimResult{Outcome::held, "n0:1"});
  CHECK(etcd.value() == "n0:1");
}

TEST_CASE("etcd_coordinator_key: of two that claim at once one hosts", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  Etcd::Node second(etcd);
  std::optional<ClaimResult> one;
  std::optional<ClaimResult> two;
  first.coordinator.claim("n0:1", "", [&](const ClaimResult& claimed) { one = claimed; });
  second.coordinator.claim("n1:1", "", [&](const ClaimResult& claimed) { two = claimed; });
  test::drive(etcd.loop, [&] { return one && two; });
  CHECK(*one == ClaimResult{Outcome::acquired});
  CHECK(*two == ClaimResult{Outcome::held, "n0:1"});
}

TEST_CASE("etcd_coordinator_key: a lease that expires before the key is written fails the claim for a while",
          "[rendezvous]") {
  Etcd etcd;
  Etcd::Node node(etcd);
  etcd.fake.on_alive = [&](std::int64_t lease) { etcd.fake.expire(lease); };
  CHECK(node.claim("n0:1") == ClaimResult{Outcome::failed, "etcdserver: requested lease not found (404)"});
  etcd.fake.on_alive = {};
  CHECK(node.claim("n0:1") == ClaimResult{Outcome::acquired});
}

TEST_CASE("etcd_coordinator_key: a successor replaces the key of the lost host, and no other",
          "[rendezvous]") {
  Etcd etcd;
  etcd.fake.set("/p/job7/hub", "n0:1");
  Etcd::Node successor(etcd);
  CHECK(successor.claim("n1:1", "n8:1") == ClaimResult{Outcome::held, "n0:1"});
  CHECK(successor.claim("n1:1", "n0:1") == ClaimResult{Outcome::acquired});
  CHECK(etcd.value() == "n1:1");
}

TEST_CASE("etcd_coordinator_key: a released key can be claimed at once", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  CHECK(first.claim("n0:1").outcome == Outcome::acquired);
  first.coordinator.release();
  bool released = false;
  first.coordinator.release([&] { released = !etcd.fake.has("/p/job7/hub"); });
  test::drive(etcd.loop, [&] { return released; });
  CHECK(Etcd::Node(etcd).claim("n1:1") == ClaimResult{Outcome::acquired});
}

TEST_CASE("etcd_coordinator_key: release() leaves another node's key", "[rendezvous]") {
  Etcd etcd;
  etcd.fake.set("/p/job7/hub", "n0:1");
  Etcd::Node second(etcd);
  CHECK(second.claim("n1:1").outcome == Outcome::held);
  second.release();
  CHECK(etcd.value() == "n0:1");
}

TEST_CASE("etcd_coordinator_key: the lease is kept alive, and renewed when it has expired", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  CHECK(first.claim("n0:1").outcome == Outcome::acquired);
  test::drive(etcd.loop, [&] { return etcd.fake.times_asked("/v3/lease/keepalive") == 1; });
  etcd.fake.expire_leases();
  CHECK(etcd.value().empty());
  test::drive(etcd.loop, [&] { return etcd.value() == "n0:1"; });
  CHECK(first.new_owner.empty());
}

TEST_CASE("etcd_coordinator_key: a host learns that another node has taken the key", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  CHECK(first.claim("n0:1").outcome == Outcome::acquired);
  etcd.fake.set("/p/job7/hub", "n1:1");
  test::drive(etcd.loop, [&] { return !first.new_owner.empty(); });
  CHECK(first.new_owner == "n1:1");
  CHECK(etcd.value() == "n1:1");
}

TEST_CASE(
    "etcd_coordinator_key: a key that was free for a while is taken back on request, an overwritten one not",
    "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  first.if_lapsed = EtcdCoordinatorKey::Loss::take_back;
  CHECK(first.claim("n0:1").outcome == Outcome::acquired);
  etcd.fake.expire_leases();
  Etcd::Node second(etcd);
  second.if_lapsed = EtcdCoordinatorKey::Loss::take_back;
  CHECK(second.claim("n1:1").outcome == Outcome::acquired);
  test::drive(etcd.loop, [&] { return etcd.value() == "n0:1"; });
  CHECK(first.new_owner == "n1:1");
  test::drive(etcd.loop, [&] { return !second.new_owner.empty(); });
  CHECK(second.new_owner == "n0:1");
  CHECK(etcd.value() == "n0:1");
}

TEST_CASE("etcd_coordinator_key: who waits for another owner has the key when it is free again",
          "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  first.if_lapsed = EtcdCoordinatorKey::Loss::wait;
  CHECK(first.claim("n0:1").outcome == Outcome::acquired);
  etcd.fake.expire_leases();
  Etcd::Node second(etcd);
  CHECK(second.claim("n1:1").outcome == Outcome::acquired);
  test::drive(etcd.loop, [&] { return first.new_owner == "n1:1"; });
  CHECK(etcd.value() == "n1:1");
  second.release();
  test::drive(etcd.loop, [&] { return etcd.value() == "n0:1"; });
}

TEST_CASE("etcd_coordinator_key: a short outage of etcd does no harm", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  CHECK(first.claim("n0:1").outcome == Outcome::acquired);
  etcd.fake.failure = {0, "no route"};
  const auto count = etcd.fake.asked.size();
  test::drive(etcd.loop, [&] { return etcd.fake.asked.size() == count + 2; });
  etcd.fake.failure = {200, ""};
  test::drive(etcd.loop, [&] { return etcd.fake.asked.back() == "/v3/kv/range"; });
  CHECK(etcd.fake.times_asked("/v3/lease/grant") == 1);
  CHECK(first.new_owner.empty());
}

TEST_CASE("etcd_coordinator_key: transient and permanent errors differ", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node node(etcd);
  etcd.fake.failure = {0, "Connection refused"};
  CHECK(node.claim("n0:1") == ClaimResult{Outcome::failed, "Connection refused"});
  etcd.fake.failure = {503, R"({"message":"etcdserver: no leader"})"};
  CHECK(node.claim("n0:1") == ClaimResult{Outcome::failed, "etcdserver: no leader (503)"});
  etcd.fake.failure = {404, "404 page not found\n"};
  CHECK(node.claim("n0:1") ==
        ClaimResult{Outcome::refused,
                    "it has no JSON gateway of etcd's API version 3: 404 page not found (404)"});
  etcd.fake.failure = {400, R"({"error":"etcdserver: user name is empty"})"};
  CHECK(node.claim("n0:1") ==
        ClaimResult{Outcome::refused, "it refuses the request: etcdserver: user name is empty (400)"});
}

}  // namespace etcd_coordinator_key_test
