// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/dcp_checkpoint.hpp"

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/formats/safetensors.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace dcp_checkpoint_test {

namespace {

namespace fs = std::filesystem;
using acc::test::TemporaryFolder;

// Written by tests/parity/record_dcp.py: two processes, and the same weights whole.
fs::path recorded() {
  return fs::path(ACC_TEST_DATA) / "dcp";
}

// A copy that a test may damage.
fs::path copy_in(const TemporaryFolder& folder) {
  fs::copy(recorded() / "sharded", folder.path() / "c", fs::copy_options::recursive);
  return folder.path() / "c";
}

std::string error_of(const fs::path& checkpoint) {
  return acc::test::error_of([&] {
    for (const acc::launcher::DcpWeight& weight : acc::launcher::read_dcp_checkpoint(checkpoint))
      acc::launcher::read_dcp_weight(checkpoint, weight);
  });
}

}  // namespace

TEST_CASE("dcp checkpoint: parts by rows and by columns are merged into whole tensors", "[weights]") {
  const fs::path whole = recorded() / "whole.safetensors";
  const std::string bytes = acc::read_file(whole);
  const acc::SafetensorsHeader header = acc::read_safetensors_header(whole);
  const std::vector<acc::launcher::DcpWeight> weights =
      acc::launcher::read_dcp_checkpoint(recorded() / "sharded");
  REQUIRE(weights.size() == header.tensors.size());
  for (const acc::TensorInfo& wanted : header.tensors) {
    INFO(wanted.name);
    const auto match =
        std::ranges::find(weights, wanted.name, [](const auto& weight) { return weight.info.name; });
    REQUIRE(match != weights.end());
    CHECK(match->info.dtype == wanted.dtype);
    CHECK(match->info.shape == wanted.shape);
    CHECK(acc::launcher::read_dcp_weight(recorded() / "sharded", *match) ==
          bytes.substr(header.data_begin + wanted.begin, wanted.end - wanted.begin));
  }
}

TEST_CASE("dcp checkpoint: a folder is one when it has metadata", "[weights]") {
  const TemporaryFolder folder;
  CHECK(acc::launcher::is_dcp_checkpoint(recorded() / "sharded"));
  CHECK_FALSE(acc::launcher::is_dcp_checkpoint(folder.path()));
}

TEST_CASE("dcp checkpoint: a missing or truncated file is named", "[weights]") {
  const TemporaryFolder folder;
  const fs::path checkpoint = copy_in(folder);
  const fs::path part = checkpoint / "__1_0.distcp";
  const std::string whole = acc::read_file(part);
  acc::replace_file(part, std::string_view(whole).substr(0, whole.size() - 100));
  CHECK(error_of(checkpoint) == part.string() + ": is truncated");
  fs::remove(part);
  CHECK(error_of(checkpoint) == part.string() + ": cannot be read: No such file or directory");
}

TEST_CASE("dcp checkpoint: damaged metadata is an error or other values, never worse", "[weights]") {
  const TemporaryFolder folder;
  const fs::path checkpoint = copy_in(folder);
  const std::string whole = acc::read_file(checkpoint / ".metadata");
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
    folder.write("c/.metadata", damaged);
    const std::string error = error_of(checkpoint);
    CHECK((error == "no error" || error.starts_with(checkpoint.string())));
  }
}

}  // namespace dcp_checkpoint_test
