// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/node_health.hpp"

#include "acc/preflight/node_json.hpp"
#include "support/catch.hpp"
#include "support/observations.hpp"

namespace node_health_test {

using namespace acc::test;

TEST_CASE("node_health: survives the way through the store", "[preflight]") {
  NodeHealth sent = healthy_node(3);
  sent.xids->push_back({79, "0000:10:00"});
  sent.gpus[1].lost = sent.gpus[1].needs_reset = true;
  sent.gpus[1].free_bytes.reset();
  sent.gpus[0].slowdowns = {"heat"};
  sent.unanswered = {"the disk of /tmp"};
  sent.disk_error = "Read-only file system";
  const NodeHealth received = decode_health(encode(sent));
  CHECK(received.gpus == sent.gpus);
  CHECK(received.xids == sent.xids);
  CHECK(to_json(received) == to_json(sent));
  sent.xids.reset();
  sent.own_name.reset();
  CHECK_FALSE(decode_health(encode(sent)).xids);
  CHECK_FALSE(decode_health(encode(sent)).own_name);
}

TEST_CASE("node_health: a value that is not UTF-8 does not prevent a report", "[preflight]") {
  NodeHealth sent = healthy_node(0);
  sent.log_folder = "/tmp/\xff";
  CHECK(decode_health(encode(sent)).log_folder == "/tmp/\xEF\xBF\xBD");
}

TEST_CASE("node_health: connections and transfers survive the way through the store", "[preflight]") {
  const Observations seen = healthy_nodes(2);
  CHECK(decode_connections(encode(seen.connections)) == seen.connections);
  CHECK(decode_transfers(encode(seen.transfers)) == seen.transfers);
  CHECK_THROWS(decode_transfers("[{}]"));
}

TEST_CASE("node_health: a number that does not fit is refused, not made another one", "[preflight]") {
  const auto with = [](const char* name, const Json& value) {
    Json node = to_json(healthy_node(0));
    node[name] = value;
    return node.dump();
  };
  CHECK(decode_health(with("rank", 1)).rank == 1);
  CHECK_THROWS(decode_health(with("rank", 4'294'967'296)));
  CHECK_THROWS(decode_health(with("rank", 1e300)));
  CHECK_THROWS(decode_health(with("port", 65'536)));
  CHECK_THROWS(decode_health(with("free_disk_bytes", -1)));
}

}  // namespace node_health_test
