// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/cifar_file.hpp"

#include <string>

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "support/torch_tensor.hpp"

namespace {

// An image whose first byte of red, green and blue is `value`, + 1 and + 2.
std::string record(const std::string& labels, char value) {
  std::string pixels(3072, '\0');
  for (int plane = 0; plane < 3; ++plane)
    pixels[static_cast<std::size_t>(1024 * plane)] = static_cast<char>(value + plane);
  return labels + pixels;
}

std::string complaint_about(const acc::test::TemporaryFolder& folder) {
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

TEST_CASE("cifar_file: a file that is none is an error that names it", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  CHECK_THROWS_AS(acc::read_cifar10(folder.path()), acc::Error);
  folder.write("test_batch.bin", "");
  CHECK(complaint_about(folder) == "its 0 bytes are no whole number of images of 3073 bytes");
  folder.write("test_batch.bin", record("\x01", 0) + "x");
  CHECK(complaint_about(folder) == "its 3074 bytes are no whole number of images of 3073 bytes");
  folder.write("test_batch.bin", record("\x0a", 0));
  CHECK(complaint_about(folder) == "has label 10, but there are 10 classes");
}
