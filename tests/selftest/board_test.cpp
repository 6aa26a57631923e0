// SPDX-License-Identifier: Apache-2.0
#include "board.hpp"

#include <unistd.h>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using acc::selftest::Board;

TEST_CASE("board: processes see how far each of them is", "[selftest]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("board", "");
  Board board(file, 3);
  REQUIRE(board.shared());
  board.come_to(0, 4);
  Board another(file, 3);
  another.come_to(2, 5);
  const auto places = board.places();
  REQUIRE(places.size() == 3);
  CHECK(places[0].pid == ::getpid());
  CHECK(places[0].step == 4);
  CHECK(places[1].pid == 0);
  CHECK(places[2].step == 5);
}

TEST_CASE("board: one process tells how the test failed", "[selftest]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("board", "");
  Board board(file, 2);
  Board another(file, 2);
  CHECK(another.claim_report());
  CHECK_FALSE(board.claim_report());
  CHECK_FALSE(another.claim_report());
}

TEST_CASE("board: without a file a process knows nobody and tells itself", "[selftest]") {
  Board board({}, 2);
  board.come_to(0, 1);
  CHECK_FALSE(board.shared());
  CHECK(board.places().empty());
  CHECK(board.claim_report());
  CHECK_FALSE(Board("/nowhere/board", 2).shared());
}

TEST_CASE("board: a rank that has no place is ignored", "[selftest]") {
  const acc::test::TemporaryFolder folder;
  Board board(folder.write("board", ""), 1);
  board.come_to(7, 1);
  CHECK(board.places().size() == 1);
  CHECK(board.places()[0].pid == 0);
}
