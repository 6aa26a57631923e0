// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/weights_replacement.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/in_child.hpp"
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

void make_older(const fs::path& path) {
  fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(25));
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

TEST_CASE("weights_replacement: two processes of one id at the same time do not share files", "[formats]") {
  const TemporaryFolder folder;
  acc::WeightsReplacement first(folder.path());
  acc::WeightsReplacement second(folder.path());
  CHECK(first.temporary() != second.temporary());
  write(first, {"model.safetensors"}, "first");
  write(second, {"model.safetensors"}, "second");
  first.publish();
  CHECK(folder.read("model.safetensors") == "first");
  second.publish();
  CHECK(folder.read("model.safetensors") == "second");
  CHECK(names_in(folder.path()) == Names{"model.safetensors"});
}

TEST_CASE("weights_replacement: the next save removes what a killed one has left", "[formats]") {
  const TemporaryFolder folder;
  const int code = acc::test::in_child([&] {
    auto* const killed = new acc::WeightsReplacement(folder.path());  // its destructor does not run
    write(*killed, kShards, "part");
    return 0;
  });
  CHECK(code == 0);
  CHECK(names_in(folder.path()).size() == 1);
  {
    const acc::WeightsReplacement next(folder.path());
    CHECK(names_in(folder.path()) == Names{next.temporary().filename().string()});
  }
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("weights_replacement: what others may still write to stays for a day", "[formats]") {
  const TemporaryFolder folder;
  // Of another machine, of one without locks, and of an earlier version.
  for (const std::string name : {".weights.acc-0-0-12345678", ".weights.acc-12345678", ".weights.acc-17"}) {
    INFO(name);
    const fs::path file = folder.write(name + "/model.safetensors", "part");
    make_older(file.parent_path());
    const acc::WeightsReplacement early(folder.path());
    CHECK(fs::exists(file));
    make_older(file);
    const acc::WeightsReplacement late(folder.path());
    CHECK_FALSE(fs::exists(file.parent_path()));
  }
}

TEST_CASE("weights_replacement: what is locked is never removed, however old", "[formats]") {
  const TemporaryFolder folder;
  const acc::WeightsReplacement slow(folder.path());
  make_older(slow.temporary());
  const acc::WeightsReplacement other(folder.path());
  CHECK(fs::exists(slow.temporary()));
}

}  // namespace weights_replacement_test
