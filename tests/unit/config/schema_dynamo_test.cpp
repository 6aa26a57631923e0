// SPDX-License-Identifier: Apache-2.0
#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::launcher::parse_config;
using acc::launcher::Value;
using acc::test::error_of;

namespace {

Value read_section(const std::string& section, const std::string& lines) {
  const std::string text = "distributed_type: MULTI_GPU\n" + section + ":\n" + lines;
  return parse_config(text, "c.yaml").values.at(section);
}

}  // namespace

TEST_CASE("schema_dynamo: back ends are taken in any case, and an unquoted no is one", "[config]") {
  CHECK(read_section("dynamo_config", "  backend: no\n") == Value{{"dynamo_backend", "NO"}});
  CHECK(read_section("dynamo_config", "  dynamo_backend: inductor\n") ==
        Value{{"dynamo_backend", "INDUCTOR"}});
}
