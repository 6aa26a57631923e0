// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/etcd_coordinator_key.hpp"

#include <optional>

#include "support/catch.hpp"
#include "support/drive.hpp"
#include "support/fake_etcd.hpp"

namespace etcd_coordinator_key_test {

using namespace acc;
using namespace acc::launcher;
using How = EtcdCoordinatorKey::Claimed::How;
using Claimed = EtcdCoordinatorKey::Claimed;

namespace {

// Nodes at one etcd.
struct Etcd {
  struct Node {
    explicit Node(Etcd& all)
        : etcd(all),
          coordinator(all.loop, all.gateway, "/p/job7/hub", [this](const auto& address, bool lapsed) {
            lost = address;
            return lapsed && takes_back;
          }) {}

    Claimed claim(const std::string& own, const std::string& replaced = "") {
      std::optional<Claimed> claimed;
      coordinator.claim(own, replaced, [&](const Claimed& result) { claimed = result; });
      test::drive(etcd.loop, [&] { return claimed.has_value(); });
      return *claimed;
    }
    Claimed find() {
      std::optional<Claimed> found;
      coordinator.find([&](const Claimed& result) { found = result; });
      test::drive(etcd.loop, [&] { return found.has_value(); });
      return *found;
    }
    void release() {
      bool done = false;
      coordinator.release([&] { done = true; });
      test::drive(etcd.loop, [&] { return done; });
    }

    Etcd& etcd;
    std::string lost = {};
    bool takes_back = false;
    EtcdCoordinatorKey coordinator;
  };

  std::string value() const { return fake.value("/p/job7/hub"); }

  boost::asio::io_context loop;
  test::FakeEtcd fake;
  test::FakeEtcdGateway gateway{loop, fake};
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
  CHECK(first.claim("n0:1") == Claimed{How::own});
  CHECK(second.claim("n1:1") == Claimed{How::held, "n0:1"});
  CHECK(etcd.value() == "n0:1");
}

TEST_CASE("etcd_coordinator_key: find() does not host", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  Etcd::Node second(etcd);
  CHECK(second.find() == Claimed{How::failed, "nobody hosts the job"});
  CHECK(first.claim("n0:1") == Claimed{How::own});
  CHECK(second.find() == Claimed{How::held, "n0:1"});
  CHECK(etcd.value() == "n0:1");
}

TEST_CASE("etcd_coordinator_key: of two that claim at once one hosts", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  Etcd::Node second(etcd);
  std::optional<Claimed> one;
  std::optional<Claimed> two;
  first.coordinator.claim("n0:1", "", [&](const Claimed& claimed) { one = claimed; });
  second.coordinator.claim("n1:1", "", [&](const Claimed& claimed) { two = claimed; });
  test::drive(etcd.loop, [&] { return one && two; });
  CHECK(*one == Claimed{How::own});
  CHECK(*two == Claimed{How::held, "n0:1"});
}

TEST_CASE("etcd_coordinator_key: a successor replaces the key of the lost host, and no other",
          "[rendezvous]") {
  Etcd etcd;
  etcd.fake.set("/p/job7/hub", "n0:1");
  Etcd::Node successor(etcd);
  CHECK(successor.claim("n1:1", "n8:1") == Claimed{How::held, "n0:1"});
  CHECK(successor.claim("n1:1", "n0:1") == Claimed{How::own});
  CHECK(etcd.value() == "n1:1");
}

TEST_CASE("etcd_coordinator_key: a released key can be claimed at once", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  CHECK(first.claim("n0:1").how == How::own);
  first.coordinator.release();
  bool released = false;
  first.coordinator.release([&] { released = !etcd.fake.has("/p/job7/hub"); });
  test::drive(etcd.loop, [&] { return released; });
  CHECK(Etcd::Node(etcd).claim("n1:1") == Claimed{How::own});
}

TEST_CASE("etcd_coordinator_key: release() leaves another node's key", "[rendezvous]") {
  Etcd etcd;
  etcd.fake.set("/p/job7/hub", "n0:1");
  Etcd::Node second(etcd);
  CHECK(second.claim("n1:1").how == How::held);
  second.release();
  CHECK(etcd.value() == "n0:1");
}

TEST_CASE("etcd_coordinator_key: the lease is kept alive, and renewed when it has expired", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  CHECK(first.claim("n0:1").how == How::own);
  test::drive(etcd.loop, [&] { return etcd.fake.times_asked("/v3/lease/keepalive") == 1; });
  etcd.fake.expire_leases();
  CHECK(etcd.value().empty());
  test::drive(etcd.loop, [&] { return etcd.value() == "n0:1"; });
  CHECK(first.lost.empty());
}

TEST_CASE("etcd_coordinator_key: a host learns that another node has taken the key", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  CHECK(first.claim("n0:1").how == How::own);
  etcd.fake.set("/p/job7/hub", "n1:1");
  test::drive(etcd.loop, [&] { return !first.lost.empty(); });
  CHECK(first.lost == "n1:1");
  CHECK(etcd.value() == "n1:1");
}

TEST_CASE(
    "etcd_coordinator_key: a key that was free for a while is taken back on request, an overwritten one not",
    "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  first.takes_back = true;
  CHECK(first.claim("n0:1").how == How::own);
  etcd.fake.expire_leases();
  Etcd::Node second(etcd);
  second.takes_back = true;
  CHECK(second.claim("n1:1").how == How::own);
  test::drive(etcd.loop, [&] { return etcd.value() == "n0:1"; });
  CHECK(first.lost == "n1:1");
  test::drive(etcd.loop, [&] { return !second.lost.empty(); });
  CHECK(second.lost == "n0:1");
  CHECK(etcd.value() == "n0:1");
}

TEST_CASE("etcd_coordinator_key: a short outage of etcd does no harm", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node first(etcd);
  CHECK(first.claim("n0:1").how == How::own);
  etcd.fake.failure = {0, "no route"};
  const auto asked = etcd.fake.asked.size();
  test::drive(etcd.loop, [&] { return etcd.fake.asked.size() == asked + 2; });
  etcd.fake.failure = {200, ""};
  test::drive(etcd.loop, [&] { return etcd.fake.asked.back() == "/v3/kv/range"; });
  CHECK(etcd.fake.times_asked("/v3/lease/grant") == 1);
  CHECK(first.lost.empty());
}

TEST_CASE("etcd_coordinator_key: transient and permanent errors differ", "[rendezvous]") {
  Etcd etcd;
  Etcd::Node node(etcd);
  etcd.fake.failure = {0, "Connection refused"};
  CHECK(node.claim("n0:1") == Claimed{How::failed, "Connection refused"});
  etcd.fake.failure = {503, R"({"message":"etcdserver: no leader"})"};
  CHECK(node.claim("n0:1") == Claimed{How::failed, "etcdserver: no leader (503)"});
  etcd.fake.failure = {404, "404 page not found\n"};
  CHECK(node.claim("n0:1") ==
        Claimed{How::refused, "it has no JSON gateway of etcd's API version 3: 404 page not found (404)"});
  etcd.fake.failure = {400, R"({"error":"etcdserver: user name is empty"})"};
  CHECK(node.claim("n0:1") ==
        Claimed{How::refused, "it refuses the request: etcdserver: user name is empty (400)"});
}

}  // namespace etcd_coordinator_key_test
