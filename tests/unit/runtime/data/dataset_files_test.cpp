// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/dataset_files.hpp"

#include <zlib.h>

#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "support/torch_tensor.hpp"

namespace dataset_files_test {

namespace {

using namespace std::string_literals;

// 2 rows of 3 bytes.
const std::string kBytes = "\x00\x00\x08\x02\x00\x00\x00\x02\x00\x00\x00\x03\x01\x02\x03\x04\x05\xff"s;

std::filesystem::path write(const std::string& content) {
  const auto file = acc::test::temporary_folder() / "file.idx";
  acc::replace_file(file, content);
  return file;
}

std::string failure_of(const std::string& content) {
  const auto file = write(content);
  try {
    acc::read_idx(file);
  } catch (const acc::Error& error) {
    CHECK(error.problems().front().where == file.string());
    return error.problems().front().what;
  }
  return "none";
}

}  // namespace

TEST_CASE("idx_file: bytes are read in the header's shape", "[runtime]") {
  const at::Tensor expected = acc::test::numbers({1, 2, 3, 4, 5, 255}, {2, 3}, at::kByte);
  CHECK(acc::read_idx(write(kBytes)).equal(expected));
}

TEST_CASE("idx_file: a gzip file reads as the plain one", "[runtime]") {
  const auto file = acc::test::temporary_folder() / "file.idx.gz";
  gzFile gz = gzopen(file.c_str(), "wb");
  REQUIRE(gzwrite(gz, kBytes.data(), static_cast<unsigned>(kBytes.size())) ==
          static_cast<int>(kBytes.size()));
  REQUIRE(gzclose(gz) == Z_OK);
  CHECK(acc::read_idx(file).equal(acc::read_idx(write(kBytes))));
}

TEST_CASE("idx_file: wide numbers are big-endian", "[runtime]") {
  const std::string ints = "\x00\x00\x0c\x01\x00\x00\x00\x02\x00\x00\x01\x00\xff\xff\xff\xff"s;
  CHECK(acc::read_idx(write(ints)).equal(acc::test::numbers({256, -1}, {2}, at::kInt)));
  const std::string floats = "\x00\x00\x0d\x01\x00\x00\x00\x01\x3f\xc0\x00\x00"s;
  CHECK(acc::read_idx(write(floats)).equal(acc::test::numbers({1.5}, {1}, at::kFloat)));
}

TEST_CASE("idx_file: a file may be empty of data", "[runtime]") {
  const std::string none = "\x00\x00\x08\x02\x00\x00\x00\x00\x00\x00\x00\x03"s;
  CHECK(acc::read_idx(write(none)).sizes() == c10::IntArrayRef({0, 3}));
}

TEST_CASE("idx_file: a broken file is an error that names it", "[runtime]") {
  CHECK(failure_of("") == "is not an IDX file");
  CHECK(failure_of("PK\x03\x04 something else") == "is not an IDX file");
  CHECK(failure_of("\x00\x00\x07\x01"s) == "is not an IDX file");
  CHECK(failure_of("\x00\x00\x08\x00"s) == "is not an IDX file");
  CHECK(failure_of(kBytes.substr(0, 9)) == "ends within its header");
  CHECK(failure_of(kBytes.substr(0, 15)) == "ends after 3 of 6 bytes of data");
  CHECK(failure_of(kBytes + "x") == "has more data than its header says");
}

TEST_CASE("idx_file: a header with a wrong size does not allocate memory", "[runtime]") {
  const std::string huge = "\x00\x00\x08\x02\xff\xff\xff\xff\xff\xff\xff\xff"s;
  CHECK(failure_of(huge) == "ends after 0 of 18446744065119617025 bytes of data");
  const std::string beyond = "\x00\x00\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s;
  CHECK(failure_of(beyond) == "has impossible sizes");
}

TEST_CASE("idx_file: a missing file and a truncated gzip file are errors", "[runtime]") {
  CHECK_THROWS_AS(acc::read_idx(acc::test::temporary_folder() / "missing"), acc::Error);
  const std::string torn = acc::read_file(ACC_MNIST_DATA "/t10k-labels-idx1-ubyte.gz").substr(0, 300);
  CHECK(failure_of(torn) != "none");
}

TEST_CASE("idx_file: the bundled digits are 4,000 and 1,000", "[runtime]") {
  CHECK(acc::read_idx(ACC_MNIST_DATA "/train-images-idx3-ubyte.gz").sizes() ==
        c10::IntArrayRef({4000, 28, 28}));
  CHECK(acc::read_idx(ACC_MNIST_DATA "/t10k-labels-idx1-ubyte.gz").sizes() == c10::IntArrayRef({1000}));
}

namespace {

// A record with an image whose first bytes of red, green and blue are `value`, `value` + 1 and `value` + 2.
std::string record(const std::string& labels, char value) {
  std::string pixels(3072, '\0');
  for (int plane = 0; plane < 3; ++plane)
    pixels[static_cast<std::size_t>(1024 * plane)] = static_cast<char>(value + plane);
  return labels + pixels;
}

std::string failure_of(const acc::test::TemporaryFolder& folder) {
  try {
    acc::read_cifar10(folder.path(), /*train=*/false);
  } catch (const acc::Error& error) {
    CHECK(error.problems().front().where == (folder.path() / "test_batch.bin").string());
    return error.problems().front().what;
  }
  return "none";
}

}  // namespace

TEST_CASE("cifar_file: the five parts of CIFAR-10 are one data set", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  for (char part = 1; part <= 5; ++part)
    folder.write("data_batch_" + std::to_string(part) + ".bin",
                 record(std::string(1, part), part) + record("\x09", 50));
  const auto [images, labels] = acc::read_cifar10(folder.path());
  CHECK(images.sizes() == c10::IntArrayRef({10, 3, 32, 32}));
  CHECK(labels.equal(acc::test::numbers({1, 9, 2, 9, 3, 9, 4, 9, 5, 9}, {10}, at::kLong)));
  CHECK(images[4][0][0][0].item<int>() == 3);
  CHECK(images[4][2][0][0].item<int>() == 5);
}

TEST_CASE("cifar_file: CIFAR-100 has the fine labels", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  folder.write("test.bin", record("\x03\x63", 7));
  const auto [images, labels] = acc::read_cifar100(folder.path(), /*train=*/false);
  CHECK(labels.equal(acc::test::numbers({99}, {1}, at::kLong)));
  CHECK(images[0][1][0][0].item<int>() == 8);
}

TEST_CASE("cifar_file: an invalid file is an error that names it", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  CHECK_THROWS_AS(acc::read_cifar10(folder.path()), acc::Error);
  folder.write("test_batch.bin", "");
  CHECK(failure_of(folder) == "its 0 bytes are not a whole number of images of 3073 bytes");
  folder.write("test_batch.bin", record("\x01", 0) + "x");
  CHECK(failure_of(folder) == "its 3074 bytes are not a whole number of images of 3073 bytes");
  folder.write("test_batch.bin", record("\x0a", 0));
  CHECK(failure_of(folder) == "has label 10, but there are 10 classes");
}

}  // namespace dataset_files_test
