// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/role_ranks.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::launcher::assign_ranks;
using acc::launcher::AssignedRanks;
using acc::launcher::RoleInfo;

TEST_CASE("role ranks: one node after the other, and each role by itself", "[rendezvous]") {
  CHECK(assign_ranks({{"train", 2}, {"eval", 1}, {"train", 3}}) ==
        std::vector<AssignedRanks>{{0, 6, 0, 5}, {2, 6, 0, 1}, {3, 6, 2, 5}});
  CHECK(assign_ranks({{"default", 8}}) == std::vector<AssignedRanks>{{0, 8, 0, 8}});
}

TEST_CASE("role ranks: the texts are torchrun's, letter for letter", "[rendezvous]") {
  CHECK(to_json(RoleInfo{"default", 2}, 1) == R"({"role": "default", "rank": 1, "local_world_size": 2})");
  CHECK(to_json(RoleInfo{"a\"b\xc3\xa9", 2}, 0) ==
        R"({"role": "a\"b\u00e9", "rank": 0, "local_world_size": 2})");
  CHECK(to_json(AssignedRanks{2, 4, 1, 3}) == "[2, 4, 1, 3]");
}

TEST_CASE("role ranks: what is written can be read", "[rendezvous]") {
  const RoleInfo info = {"tr\xc3\xa4in", 7};
  CHECK(acc::launcher::read_role_info(to_json(info, 3)) == info);
  const AssignedRanks ranks = {2, 4, 1, 3};
  CHECK(acc::launcher::read_assigned_ranks(to_json(ranks)) == ranks);
}

TEST_CASE("role ranks: anything else is refused with its text", "[rendezvous]") {
  const std::string info =
      GENERATE("", "{}", R"({"role": 1, "local_world_size": 2})", R"({"role": "a", "local_world_size": -1})",
               R"({"role": "a", "local_world_size": 1e9})", R"({"role": "a", "local_world_size": "2"})");
  CHECK(acc::test::error_of([&] { acc::launcher::read_role_info(info); }) ==
        "what a node says of its workers makes no sense: " + info);
  const std::string ranks = GENERATE("[1, 2, 3]", "{}", "[0, 99999999999, 0, 1]", "[0.5, 1, 0, 1]");
  CHECK(acc::test::error_of([&] { acc::launcher::read_assigned_ranks(ranks); }) ==
        "what node 0 says of the ranks makes no sense: " + ranks);
}
