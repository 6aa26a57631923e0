// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/torch_file.hpp"

#include <filesystem>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace torch_file_test {

namespace {

using Numbers = std::vector<std::int64_t>;

// Written by tests/parity/record_pt_files.py.
std::string recorded(const std::string& name) {
  return acc::read_file(std::filesystem::path(ACC_TEST_DATA) / "runtime" / "pt" / (name + ".pt"));
}

const acc::PickleValue& entry(const acc::TorchFile& file, const std::string& name) {
  for (const auto& [key, value] : file.root().pairs) {
    if (key->text == name) return *value;
  }
  throw acc::Error({.what = "there is no " + name});
}

}  // namespace

TEST_CASE("torch file: shape and bytes of a tensor are found, with any strides", "[formats]") {
  const std::string bytes = recorded("tensors");
  const acc::TorchFile file(bytes);
  const auto grid = file.tensor(entry(file, "grid")).value();
  CHECK(grid.dtype->name == "float32");
  CHECK(grid.sizes == Numbers{3, 4});
  CHECK(grid.strides == Numbers{4, 1});
  CHECK(grid.bytes.size() == 48);
  const auto transposed = file.tensor(entry(file, "transposed")).value();
  CHECK(transposed.strides == Numbers{1, 4});
  CHECK(transposed.bytes.data() == grid.bytes.data());
  const auto row = file.tensor(entry(file, "row")).value();
  CHECK(row.bytes.data() == grid.bytes.data() + 16);
  CHECK(row.bytes.size() == 16);
  CHECK(file.tensor(entry(file, "expanded")).value().bytes.size() == 8);
  CHECK(file.tensor(entry(file, "empty")).value().bytes.empty());
  CHECK(file.tensor(entry(file, "parameter")).value().sizes == Numbers{2});
}

TEST_CASE("torch file: other values are not tensors", "[formats]") {
  const std::string bytes = recorded("runs_code");
  const acc::TorchFile file(bytes);
  CHECK_FALSE(file.tensor(entry(file, "a")));
  CHECK_FALSE(file.tensor(file.root()));
}

TEST_CASE("torch file: an unsupported file is an error that says what it is", "[formats]") {
  const std::string old = recorded("old_format");
  CHECK(acc::test::error_of([&] { acc::TorchFile{old}; }) ==
        "is in the format of PyTorch before 1.6 (write it again in Python: torch.save(torch.load(file), "
        "file))");
  const std::string compressed =
      acc::read_file(std::filesystem::path(ACC_TEST_DATA) / "zip" / "deflated.zip");
  CHECK(acc::test::error_of([&] { acc::TorchFile{compressed}; }) ==
        "holds the compressed or encrypted file 'a/data.pkl'");
  const std::string sparse = recorded("sparse");
  CHECK(acc::test::error_of([&] {
          const acc::TorchFile file(sparse);
          file.tensor(entry(file, "a"));
        }) == "holds a tensor of a kind that acc does not support (torch._utils._rebuild_sparse_tensor)");
}

}  // namespace torch_file_test
