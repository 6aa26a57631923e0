// SPDX-License-Identifier: Apache-2.0
#include "acc/base/engine.hpp"
#include "support/catch.hpp"

namespace engine_other_nodes_test {

using acc::other_nodes;

TEST_CASE("engine_other_nodes: variables that count nodes are named", "[base]") {
  CHECK(other_nodes({{"NNODES", "2"}, {"NODE_RANK", "1"}}) == "NNODES=2 and NODE_RANK=1");
  CHECK(other_nodes({{"WORLD_SIZE", "2"}, {"RANK", "1"}}) == "WORLD_SIZE=2 and RANK=1");
  CHECK(other_nodes({{"AZUREML_NODE_COUNT", "4"}}) == "AZUREML_NODE_COUNT=4");
  CHECK(other_nodes({{"VC_WORKER_NUM", "2"}, {"VC_MASTER_NUM", "1"}}) == "VC_WORKER_NUM=2");
  CHECK(other_nodes({{"CLUSTER_SPEC", R"({"cluster":{"workerpool0":["a-0:2222"],"workerpool1":["b-0:2222"]},)"
                                      R"("task":{"type":"workerpool0","index":0}})"}}) ==
        "CLUSTER_SPEC with 2 hosts");
}

TEST_CASE("engine_other_nodes: variables of which a part is missing are named, too", "[base]") {
  CHECK(other_nodes({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}}) ==
        "WORLD_SIZE=2 and MASTER_ADDR=h");
  CHECK(other_nodes({{"RANK", "1"}}) == "RANK=1 without WORLD_SIZE");
  CHECK(other_nodes({{"NODE_RANK", "1"}}) == "NODE_RANK=1 without NNODES");
  CHECK(other_nodes({{"OMPI_COMM_WORLD_SIZE", "2"}}) == "OMPI_COMM_WORLD_SIZE=2");
  CHECK(other_nodes({{"PMI_SIZE", "2"}}) == "PMI_SIZE=2");
  CHECK(other_nodes({{"RANK", "0"}}).empty());
  CHECK(other_nodes({{"RANK", "1"}, {"LOCAL_RANK", "1"}}).empty());
  CHECK(other_nodes({{"WORLD_SIZE", "8"}, {"MASTER_ADDR", "localhost"}}).empty());
}

TEST_CASE("engine_other_nodes: one node, nodes without a rank and a worker are nothing to tell", "[base]") {
  CHECK(other_nodes({}).empty());
  CHECK(other_nodes({{"NNODES", "1"}, {"NODE_RANK", "0"}}).empty());
  CHECK(other_nodes({{"NNODES", "1:4"}, {"NODE_RANK", "0"}}).empty());
  CHECK(other_nodes({{"NNODES", "2"}}).empty());
  CHECK(other_nodes({{"NNODES", "2"}, {"NODE_RANK", "1"}, {"LOCAL_RANK", "0"}}).empty());
  CHECK(other_nodes({{"CLUSTER_SPEC", R"({"cluster":{"workerpool0":["a-0:2222"]}})"}}).empty());
}

}  // namespace engine_other_nodes_test
