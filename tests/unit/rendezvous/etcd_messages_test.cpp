// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/etcd_messages.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

namespace etcd_messages_test {

using namespace acc;
using namespace acc::launcher;
using Json = nlohmann::json;

// The replies are those of etcd 3.4.23.

TEST_CASE("etcd_messages: keys and values are base64, 64-bit numbers are strings", "[rendezvous]") {
  const EtcdRequest write = etcd_write_if("/a", "b:1", 7'587'862'094'710'165'250, 12);
  CHECK(write.path == "/v3/kv/txn");
  CHECK(Json::parse(write.body) == Json::parse(R"({
    "compare": [{"key": "L2E=", "target": "MOD", "result": "EQUAL", "mod_revision": "12"}],
    "success": [{"request_put": {"key": "L2E=", "value": "Yjox", "lease": "7587862094710165250"}}]})"));
  CHECK(etcd_read("/a") == EtcdRequest{"/v3/kv/range", R"({"key":"L2E="})"});
  CHECK(etcd_grant(5) == EtcdRequest{"/v3/lease/grant", R"({"TTL":5})"});
  CHECK(etcd_keep_alive(3) == EtcdRequest{"/v3/lease/keepalive", R"({"ID":"3"})"});
  CHECK(etcd_revoke(3) == EtcdRequest{"/v3/lease/revoke", R"({"ID":"3"})"});
}

TEST_CASE("etcd_messages: a missing key is not an error, an invalid reply is absent", "[rendezvous]") {
  CHECK(etcd_key(R"({"header":{"revision":"3"}})") == EtcdKey{});
  CHECK(etcd_key(R"({"header":{},"kvs":[{"key":"L2E=","mod_revision":"2","value":"L2E=","lease":"99"}]})") ==
        EtcdKey{.value = "/a", .revision = 2, .lease = 99});
  CHECK(etcd_key(R"({"header":{},"kvs":[{"value":"?"}]})") == std::nullopt);
  CHECK(etcd_key("<html>") == std::nullopt);
  CHECK(etcd_key("[]") == std::nullopt);
}

TEST_CASE("etcd_messages: leases", "[rendezvous]") {
  CHECK(etcd_granted(R"({"header":{},"ID":"2324035520769428741","TTL":"5"})") == 2'324'035'520'769'428'741);
  CHECK(etcd_granted(R"({"header":{}})") == std::nullopt);
  CHECK(etcd_kept_alive(R"({"result":{"header":{},"ID":"23","TTL":"5"}})") == true);
  CHECK(etcd_kept_alive(R"({"result":{"header":{},"ID":"23"}})") == false);
  CHECK(etcd_kept_alive("{}") == std::nullopt);
}

TEST_CASE("etcd_messages: a late write is not done", "[rendezvous]") {
  CHECK(etcd_written(R"({"header":{},"succeeded":true})") == true);
  CHECK(etcd_written(R"({"header":{}})") == false);
  CHECK(etcd_written("") == std::nullopt);
}

TEST_CASE("etcd_messages: an error is the server's message", "[rendezvous]") {
  CHECK(etcd_error(R"({"error":"no lease","message":"no lease","code":5})") == "no lease");
  CHECK(etcd_error(R"({"error":"no lease"})") == "no lease");
  CHECK(etcd_error("404 page not found\n") == "404 page not found");
}

}  // namespace etcd_messages_test
