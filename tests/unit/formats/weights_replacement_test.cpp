// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/weights_replacement.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace weights_replacement_test {

namespace fs = std::filesystem;

using acc::test::TemporaryFolder;
using Names = std::vector<std::string>;

namespace {

Names names_in(const fs::path& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

const Names kShards = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                       "model.safetensors.index.json"};

void write(const acc::WeightsReplacement& weights, const Names& names, std::string_view text) {
  for (const std::string& name : names) acc::replace_file(weights.temporary() / name, text);
}

}  // namespace

TEST_CASE("weights_replacement: new weights take the place of earlier ones, whatever their files",
          "[formats]") {
  const TemporaryFolder folder;
  folder.write("config.json", "{}");
  const Names one = {"model.safetensors"};
  for (const Names& names : {kShards, one, kShards, kShards, one}) {
    acc::WeightsReplacement weights(folder.path());
    write(weights, names, "new");
    weights.publish();
    Names expected = names;
    expected.insert(expected.begin(), "config.json");
    CHECK(names_in(folder.path()) == expected);
  }
}

TEST_CASE("weights_replacement: what was not published leaves the earlier weights", "[formats]") {
  const TemporaryFolder folder;
  for (const std::string& name : kShards) folder.write(name, "old");
  {
    write(acc::WeightsReplacement(folder.path()), {kShards[0]}, "new");
  }
  CHECK(names_in(folder.path()) == kShards);
  CHECK(folder.read(kShards[0]) == "old");
}

TEST_CASE("weights_replacement: a failure between two shards leaves no model of both", "[formats]") {
  const TemporaryFolder folder;
  for (const std::string& name : kShards) folder.write(name, "old");
  // The second shard cannot be moved.
  fs::remove(folder.path() / kShards[1]);
  folder.write(kShards[1] + "/in_the_way", "");
  acc::WeightsReplacement weights(folder.path());
  write(weights, kShards, "new");
  CHECK_THROWS(weights.publish());
  CHECK(folder.read(kShards[0]) == "new");
  CHECK_FALSE(fs::exists(folder.path() / kShards[2]));
}

}  // namespace weights_replacement_test
