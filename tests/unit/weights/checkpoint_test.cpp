// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/checkpoint.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/safetensors_files.hpp"
#include "support/temporary_folder.hpp"

namespace checkpoint_test {

using acc::launcher::read_checkpoint;
using acc::test::error_of;
using acc::test::safetensors_text;
using acc::test::TemporaryFolder;

TEST_CASE("checkpoint: the index selects the files", "[weights]") {
  const TemporaryFolder folder;
  folder.write("a.safetensors", safetensors_text({{"x", "1"}}));
  folder.write("b.safetensors", safetensors_text({{"y", "2"}}));
  folder.write("old.safetensors", safetensors_text({{"x", "3"}}));
  folder.write("model.safetensors.index.json", R"({"weight_map":{"x":"a.safetensors","y":"b.safetensors"}})");
  const auto files = read_checkpoint(folder.path());
  REQUIRE(files.size() == 2);
  CHECK(files[0].path.filename() == "a.safetensors");
  CHECK(files[1].header.tensors[0].name == "y");
}

TEST_CASE("checkpoint: the files and tensors of the index must exist", "[weights]") {
  const TemporaryFolder folder;
  folder.write("a.safetensors", safetensors_text({{"x", "1"}}));
  const auto error = [&](const std::string& index) {
    folder.write("model.safetensors.index.json", index);
    return error_of([&] { read_checkpoint(folder.path()); });
  };
  CHECK(error(R"({"weight_map":{"x":"b.safetensors"}})")
            .ends_with("the file b.safetensors is missing (download it again)"));
  CHECK(error(R"({"weight_map":{"z":"a.safetensors"}})").ends_with("the tensor 'z' is not in a.safetensors"));
  CHECK(error(R"({"weight_map":{"x":"../a.safetensors"}})")
            .ends_with("does not name a file for the tensor 'x'"));
  CHECK(error("[]").ends_with("is not an index of safetensors files: it has no weight_map"));
}

TEST_CASE("checkpoint: without an index model.safetensors is used, or every file", "[weights]") {
  const TemporaryFolder folder;
  CHECK(read_checkpoint(folder.path()).empty());
  folder.write("1.safetensors", safetensors_text({{"x", "1"}}));
  folder.write("2.safetensors", safetensors_text({{"x", "2"}}));
  CHECK(
      error_of([&] { read_checkpoint(folder.path()); }).ends_with("the tensor 'x' is in 1.safetensors too"));
  folder.write("model.safetensors", safetensors_text({{"y", "2"}}));
  CHECK(read_checkpoint(folder.path()).size() == 1);
  CHECK(read_checkpoint(folder.path() / "1.safetensors").size() == 1);
}

TEST_CASE("checkpoint: a model is found on the disk, or in the hub's cache", "[weights]") {
  const TemporaryFolder folder;
  const acc::Environment environment{{"HF_HOME", folder.path().string()}};
  folder.write("hub/models--a--b/refs/main", "123\n");
  folder.write("hub/models--a--b/snapshots/123/config.json", "{}");
  CHECK(acc::launcher::find_model("a/b", environment) == folder.path() / "hub/models--a--b/snapshots/123");
  CHECK(acc::launcher::find_model(folder.path().string(), environment) == folder.path());
  const acc::Environment at_home{{"HF_HOME", "~"}, {"HOME", folder.path().string()}};
  CHECK(acc::launcher::find_model("a/b", at_home) == folder.path() / "hub/models--a--b/snapshots/123");
  CHECK(error_of([&] { acc::launcher::find_model("a/c", environment); }) ==
        "a/c: no such file or folder, and no such model in the hub's cache (acc downloads nothing; `hf "
        "download "
        "a/c` does)");
}

}  // namespace checkpoint_test
