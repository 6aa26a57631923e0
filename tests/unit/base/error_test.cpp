// SPDX-License-Identifier: Apache-2.0
#include "acc/base/error.hpp"

#include <string>

#include "support/catch.hpp"

namespace error_test {

using acc::Error;
using acc::ErrorKind;

TEST_CASE("error: formats where, what and hint", "[base]") {
  const Error error({.what = "no such program", .where = "train.py", .hint = "check the path"});
  CHECK(std::string(error.what()) == "train.py: no such program (check the path)");
}

TEST_CASE("error: leaves out empty parts", "[base]") {
  CHECK(std::string(Error({.what = "broken"}).what()) == "broken");
  CHECK(acc::to_string({.what = "broken", .where = "here"}) == "here: broken");
}

TEST_CASE("error: what it quotes moves no cursor", "[base]") {
  CHECK(std::string(Error({.what = "unknown key 'a\x1b[2J'", .where = "b\xff.yaml:1"}).what()) ==
        "b\\xff.yaml:1: unknown key 'a\\x1b[2J'");
  CHECK(acc::to_string({.what = "two\nlines", .where = "é"}) == "é: two\nlines");
}

TEST_CASE("error: a file's problems are reported together, a line each", "[base]") {
  const Error error(ErrorKind::config, {{.what = "one", .where = "f:1"}, {.what = "two", .where = "f:2"}});
  CHECK(std::string(error.what()) == "f:1: one\nf:2: two");
  CHECK(error.problems().size() == 2);
}

TEST_CASE("error: each kind has the exit code of the table", "[base]") {
  CHECK(acc::exit_code(ErrorKind::usage) == 2);
  CHECK(acc::exit_code(ErrorKind::config) == 2);
  CHECK(acc::exit_code(ErrorKind::system) == 1);
  CHECK(acc::exit_code(ErrorKind::rendezvous) == 75);
}

}  // namespace error_test
