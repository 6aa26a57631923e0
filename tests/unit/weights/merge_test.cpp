// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/merge.hpp"

#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/safetensors_files.hpp"
#include "support/temporary_folder.hpp"

namespace merge_test {

using acc::launcher::plan_merge;
using acc::test::safetensors_text;
using acc::test::TemporaryFolder;

namespace {

std::string bytes_of(const acc::launcher::CheckpointFile& file, const std::string& tensor,
                     const std::string& text) {
  for (const acc::TensorInfo& info : file.header.tensors) {
    if (info.name == tensor) return text.substr(file.header.data_begin + info.begin, info.end - info.begin);
  }
  return "none";
}

}  // namespace

TEST_CASE("merge: shards become one file with all their bytes", "[weights]") {
  const TemporaryFolder folder;
  const std::string large(3'000'000, 'l');
  folder.write("in/1.safetensors", safetensors_text({{"c", "ccc"}, {"a", large}}));
  folder.write("in/2.safetensors", safetensors_text({{"b", "b"}}));
  const auto from = acc::launcher::read_checkpoint(folder.path() / "in");
  const auto files = plan_merge(from, 1'000'000'000);
  REQUIRE(files.size() == 1);
  acc::launcher::write_merged(from, files, folder.path() / "deep/out", acc::ReplacementCheck({}));
  const auto merged = acc::launcher::read_checkpoint(folder.path() / "deep/out");
  REQUIRE(merged.size() == 1);
  CHECK(merged[0].header.metadata.at("format") == "pt");
  const std::string text = folder.read("deep/out/model.safetensors");
  CHECK(bytes_of(merged[0], "a", text) == large);
  CHECK(bytes_of(merged[0], "b", text) == "b");
  CHECK(bytes_of(merged[0], "c", text) == "ccc");
  CHECK(acc::launcher::merged_index(files).empty());
}

TEST_CASE("merge: a limit makes several files and their index", "[weights]") {
  const TemporaryFolder folder;
  folder.write("in/1.safetensors",
               safetensors_text({{"a", "1234"}, {"b", "123456789"}, {"c", "12"}, {"d", "1"}}));
  const auto from = acc::launcher::read_checkpoint(folder.path() / "in");
  const auto files = plan_merge(from, 5);
  REQUIRE(files.size() == 3);
  CHECK(files[1].name == "model-00002-of-00003.safetensors");
  acc::launcher::write_merged(from, files, folder.path() / "out", acc::ReplacementCheck({}));
  CHECK(acc::launcher::read_checkpoint(folder.path() / "out").size() == 3);
  const auto index = nlohmann::json::parse(folder.read("out/model.safetensors.index.json"));
  CHECK(index.at("metadata").at("total_size") == 16);
  CHECK(index.at("weight_map").at("d") == "model-00003-of-00003.safetensors");
}

TEST_CASE("merge: one that is interrupted leaves the earlier weights, and nothing else", "[weights]") {
  const TemporaryFolder folder;
  folder.write("in/1.safetensors", safetensors_text({{"a", "1234"}, {"b", "5678"}}));
  folder.write("out/model.safetensors", "earlier");
  const auto from = acc::launcher::read_checkpoint(folder.path() / "in");
  int pieces = 0;
  const auto interrupt = [&] {
    if (++pieces == 3) throw std::runtime_error("interrupted");
  };
  CHECK_THROWS_AS(acc::launcher::write_merged(from, plan_merge(from, 1000), folder.path() / "out",
                                              acc::ReplacementCheck({}), interrupt),
                  std::runtime_error);
  CHECK(folder.read("out/model.safetensors") == "earlier");
  const std::filesystem::directory_iterator left(folder.path() / "out");
  CHECK(std::distance(begin(left), end(left)) == 1);
}

TEST_CASE("merge: each tensor of a file is aligned to its elements", "[weights]") {
  const auto item = [](const char* name, const char* dtype, std::uint64_t bytes) {
    return acc::launcher::MergeItem{.tensor = {.name = name, .dtype = dtype, .end = bytes}, .source = {}};
  };
  const auto names = [](const acc::launcher::MergedFile& file) {
    std::string all;
    std::uint64_t end = 0;
    for (const acc::TensorInfo& tensor : file.header.tensors) {
      all += tensor.name;
      CHECK(tensor.begin == std::exchange(end, tensor.end));
    }
    return all;
  };
  std::vector<acc::launcher::MergeItem> items = {item("e", "F32", 4), item("d", "I64", 8),
                                                 item("c", "F32", 8), item("b", "BF16", 2),
                                                 item("a", "U8", 1)};
  const auto one = acc::launcher::lay_out(items, 1000);
  REQUIRE(one.size() == 1);
  CHECK(names(one[0]) == "dceba");
  const auto three = acc::launcher::lay_out(items, 11);
  REQUIRE(three.size() == 3);
  CHECK(names(three[0]) + "/" + names(three[1]) + "/" + names(three[2]) == "cba/d/e");
  CHECK(acc::launcher::lay_out({}, 11).size() == 1);
}

TEST_CASE("merge: a failed write leaves no incomplete file", "[weights]") {
  const TemporaryFolder folder;
  folder.write("in/1.safetensors", safetensors_text({{"a", "1234"}}));
  const auto from = acc::launcher::read_checkpoint(folder.path() / "in");
  std::filesystem::remove(folder.path() / "in/1.safetensors");
  CHECK(acc::test::error_of([&] {
          acc::launcher::write_merged(from, plan_merge(from, 100), folder.path() / "out",
                                      acc::ReplacementCheck({}));
        }).ends_with("cannot be read: No such file or directory"));
  CHECK(std::filesystem::is_empty(folder.path() / "out"));
}

TEST_CASE("merge: fewer files take the place of more, and a merge of two saves is not written", "[weights]") {
  const TemporaryFolder folder;
  folder.write("in/1.safetensors", safetensors_text({{"a", "1234"}, {"b", "5678"}}));
  const acc::ReplacementCheck check(acc::launcher::paths_of_weights(folder.path() / "in"));
  const auto from = acc::launcher::read_checkpoint(folder.path() / "in");
  acc::launcher::write_merged(from, plan_merge(from, 4), folder.path() / "out", check);
  acc::launcher::write_merged(from, plan_merge(from, 100), folder.path() / "out", check);
  const auto merged = acc::launcher::read_checkpoint(folder.path() / "out");
  REQUIRE(merged.size() == 1);
  CHECK(merged[0].path.filename() == "model.safetensors");
  folder.write("in/1.safetensors", safetensors_text({{"a", "aaaa"}, {"b", "bbbbb"}}));
  CHECK(acc::test::error_of([&] {
          acc::launcher::write_merged(from, plan_merge(from, 4), folder.path() / "out", check);
        }).ends_with("not written: what was merged has changed meanwhile"));
  CHECK(acc::launcher::read_checkpoint(folder.path() / "out").size() == 1);
}

}  // namespace merge_test
