// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/dcp_metadata.hpp"

#include <algorithm>
#include <filesystem>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace dcp_metadata_test {

namespace {

using acc::DcpMetadata;
using acc::test::error_of;

const acc::TorchDtype* dtype(std::string_view name) {
  return std::ranges::find(acc::kTorchDtypes, name, &acc::TorchDtype::name);
}

// Two parts of a matrix in two files, a scalar, and an object.
DcpMetadata sample() {
  DcpMetadata metadata;
  metadata.tensors["optimizer.state.0.weight.exp_avg"] = {
      .path = {"optimizer", "state", "0.weight", "exp_avg"},
      .dtype = dtype("float32"),
      .shape = {3, 2},
      .chunks = {{{{0, 0}, {2, 2}}, {"__0_0.distcp", 0, 1577}},
                 {{{2, 0}, {1, 2}}, {"__1_0.distcp", 64, 1577}}}};
  metadata.tensors["optimizer.state.0.weight.step"] = {.path = {"optimizer", "state", "0.weight", "step"},
                                                       .dtype = dtype("bfloat16"),
                                                       .chunks = {{{}, {"__0_0.distcp", 2000, 1577}}}};
  metadata.objects["optimizer.param_groups.0.lr"] = {
      .path = {"optimizer", "param_groups", std::int64_t{0}, "lr"}, .storage = {"__0_0.distcp", 4000, 1261}};
  return metadata;
}

std::string error_after(void (*change)(DcpMetadata&)) {
  DcpMetadata metadata = sample();
  change(metadata);
  return error_of([&] { acc::parse_dcp_metadata(acc::format_dcp_metadata(metadata)); });
}

acc::DcpTensor& matrix(DcpMetadata& metadata) {
  return metadata.tensors.at("optimizer.state.0.weight.exp_avg");
}

}  // namespace

TEST_CASE("dcp metadata: what is written is read again", "[formats]") {
  CHECK(acc::parse_dcp_metadata(acc::format_dcp_metadata(sample())) == sample());
  CHECK(acc::parse_dcp_metadata(acc::format_dcp_metadata({})) == DcpMetadata());
}

TEST_CASE("dcp metadata: a value is called by its keys", "[formats]") {
  CHECK(acc::dcp_name({"model", "0.weight"}) == "model.0.weight");
  CHECK(acc::dcp_name({"optimizer", "param_groups", std::int64_t{1}, "lr"}) == "optimizer.param_groups.1.lr");
}

// Written by tests/parity/record_dcp.py.
TEST_CASE("dcp metadata: Python's is read, and written so that it says the same", "[formats]") {
  const DcpMetadata read = acc::read_dcp_metadata(std::filesystem::path(ACC_TEST_DATA) / "dcp" / "sharded");
  REQUIRE(read.tensors.size() == 6);
  CHECK(read.objects.empty());
  const acc::DcpTensor& columns = read.tensors.at("model.columns.weight");
  CHECK(columns.path == acc::DcpPath{"model", "columns.weight"});
  CHECK(columns.shape == std::vector<std::int64_t>{3, 4});
  REQUIRE(columns.chunks.size() == 2);
  CHECK(columns.chunks[1].box == acc::DcpBox{{0, 2}, {3, 2}});
  CHECK(columns.chunks[1].storage.file == "__1_0.distcp");
  CHECK(acc::parse_dcp_metadata(acc::format_dcp_metadata(read)) == read);
}

TEST_CASE("dcp metadata: what cannot be true is an error", "[formats]") {
  CHECK(error_after([](DcpMetadata& metadata) {
          matrix(metadata).chunks[1].box.offsets = {3, 0};
        }).ends_with("a part of 'optimizer.state.0.weight.exp_avg' lies outside of it"));
  for (const std::string& file : {std::string("../x"), std::string(".."), std::string("."), std::string(),
                                  std::string("x\0y", 3), std::string("x/y")}) {
    DcpMetadata metadata = sample();
    matrix(metadata).chunks[1].storage.file = file;
    CHECK(error_of([&] {
            acc::parse_dcp_metadata(acc::format_dcp_metadata(metadata));
          }).ends_with("it names a file elsewhere"));
  }
  CHECK(error_after([](DcpMetadata& metadata) {
          for (acc::DcpChunk& chunk : matrix(metadata).chunks) chunk.storage.length = 8;
        }).ends_with("a part of 'optimizer.state.0.weight.exp_avg' is larger than its place"));
  CHECK(error_after([](DcpMetadata& metadata) {
          matrix(metadata).shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
        }).ends_with("a tensor has an impossible size"));
  CHECK(error_of([] {
          acc::parse_dcp_metadata("x");
        }).starts_with("cannot be read as metadata of torch.distributed.checkpoint: the pickle"));
}

TEST_CASE("dcp metadata: a part of it can be read, but not a file with a part of it", "[formats]") {
  const acc::test::TemporaryFolder folder;
  DcpMetadata metadata = sample();
  matrix(metadata).chunks.pop_back();
  const std::string pickle = acc::format_dcp_metadata(metadata);
  CHECK(acc::parse_dcp_metadata(pickle) == metadata);
  folder.write(".metadata", pickle);
  CHECK(error_of([&] {
          acc::read_dcp_metadata(folder.path());
        }).ends_with("the parts of 'optimizer.state.0.weight.exp_avg' are not the whole"));
}

TEST_CASE("dcp metadata: a missing or damaged file is named", "[formats]") {
  const acc::test::TemporaryFolder folder;
  const std::string file = (folder.path() / ".metadata").string();
  CHECK(error_of([&] { acc::read_dcp_metadata(folder.path()); }).starts_with(file + ": cannot be read"));
  folder.write(".metadata", "x");
  CHECK(error_of([&] { acc::read_dcp_metadata(folder.path()); }).starts_with(file + ": cannot be read as"));
}

}  // namespace dcp_metadata_test
