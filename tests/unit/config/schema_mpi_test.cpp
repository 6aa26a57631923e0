// SPDX-License-Identifier: Apache-2.0
#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::launcher::parse_config;
using acc::launcher::Value;
using acc::test::error_of;

TEST_CASE("schema_mpi: a key that has no effect any more is noted", "[config]") {
  const acc::launcher::FileConfig config = parse_config(
      "distributed_type: MULTI_CPU\nmpirun_config:\n  mpirun_ccl: '4'\n  hostfile: /h\n", "c.yaml");
  CHECK(config.values.at("mpirun_config") == Value{{"mpirun_hostfile", "/h"}});
  REQUIRE(config.notes.size() == 1);
  CHECK(acc::to_string(config.notes[0]) ==
        "c.yaml:3:3: mpirun_ccl has no effect any more: oneCCL finds its workers itself");
}
