// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/snapshot_seal.hpp"

#include "acc/formats/checksums.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace snapshot_seal_test {

TEST_CASE("snapshot_seal: a sealed folder has its record, and shows each change", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  folder.write("model.safetensors", "weights");
  const acc::SnapshotRecord record{.id = "a-1", .disk = "/runs/checkpoint-7"};
  for (const auto& step : acc::detail::seal_of(record, {})) step(folder.path());
  CHECK(acc::read_snapshot_record(folder.path()) == record);
  CHECK(acc::damage_in(folder.path()).empty());
  folder.write("model.safetensors", "Weights");
  CHECK_FALSE(acc::damage_in(folder.path()).empty());
}

}  // namespace snapshot_seal_test
