// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/etcd_curl.hpp"

#include <optional>

#include "support/catch.hpp"
#include "support/drive.hpp"
#include "support/etcd_server.hpp"

namespace etcd_curl_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

struct Client {
  explicit Client(std::chrono::milliseconds timeout = 2s)
      : gateway(std::make_unique<EtcdCurl>(loop, EtcdCurlOptions{.url = server.url(), .timeout = timeout})) {}

  EtcdReply ask(const EtcdRequest& request) {
    std::optional<EtcdReply> reply;
    gateway->post(request, [&](const EtcdReply& messages) { reply = messages; });
    test::drive(loop, [&] { return reply.has_value(); });
    return *reply;
  }

  boost::asio::io_context loop;
  test::EtcdServer server{loop};
  std::unique_ptr<EtcdCurl> gateway;
};

}  // namespace

TEST_CASE("etcd_curl: a request gets its reply", "[rendezvous]") {
  Client client;
  client.server.etcd.set("/a", "b");
  const EtcdReply reply = client.ask(etcd_read("/a"));
  CHECK(reply.status == 200);
  CHECK(etcd_key(reply.body) == EtcdKey{.value = "b", .revision = 1});
}

TEST_CASE("etcd_curl: replies come in order", "[rendezvous]") {
  Client client;
  std::vector<int> replies;
  for (int i = 0; i < 3; ++i) {
    client.gateway->post(etcd_grant(5), [&, i](const EtcdReply&) { replies.push_back(i); });
  }
  test::drive(client.loop, [&] { return replies.size() == 3; });
  CHECK(replies == std::vector<int>{0, 1, 2});
}

TEST_CASE("etcd_curl: an error of the server is a reply", "[rendezvous]") {
  Client client;
  client.server.etcd.failure = {404, "page not found"};
  const EtcdReply reply = client.ask(etcd_grant(5));
  CHECK(reply.status == 404);
  CHECK(reply.body == "page not found");
}

TEST_CASE("etcd_curl: says why there is no reply", "[rendezvous]") {
  Client client(50ms);
  client.server.is_silent = true;
  const EtcdReply reply = client.ask(etcd_grant(5));
  CHECK(reply.status == 0);
  CHECK(reply.body.find("timed out") != std::string::npos);
}

TEST_CASE("etcd_curl: can be destroyed while a request is pending", "[rendezvous]") {
  Client client(60s);
  client.server.is_silent = true;
  bool answered = false;
  client.gateway->post(etcd_grant(5), [&](const EtcdReply&) { answered = true; });
  client.gateway->post(etcd_grant(5), [&](const EtcdReply&) { answered = true; });
  client.loop.poll();
  client.gateway.reset();
  client.loop.poll();
  CHECK_FALSE(answered);
}

TEST_CASE("etcd_curl: supports https, and names a missing file", "[rendezvous]") {
  boost::asio::io_context loop;
  test::EtcdServer server{loop};
  EtcdCurl gateway(loop, {.url = "https://127.0.0.1:" + std::to_string(server.port()),
                          .cacert = "/nowhere/ca.pem",
                          .timeout = 500ms});
  std::optional<EtcdReply> reply;
  gateway.post(etcd_grant(5), [&](const EtcdReply& messages) { reply = messages; });
  test::drive(loop, [&] { return reply.has_value(); });
  CHECK(reply->status == 0);
  CHECK(reply->body.find("/nowhere/ca.pem") != std::string::npos);
}

}  // namespace etcd_curl_test
