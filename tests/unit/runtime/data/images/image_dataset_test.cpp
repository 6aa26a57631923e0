// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/images/image_dataset.hpp"

#include <thread>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/data/images/codecs.hpp"
#include "acc/runtime/data/images/image.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "support/torch_tensor.hpp"

namespace {

using acc::test::TemporaryFolder;

const std::filesystem::path kImages = ACC_TEST_DATA "/runtime/images";

// Two classes: color.png and gray.png in `a`, alpha.png in `b`.
void write_images(const TemporaryFolder& folder) {
  folder.write("a/color.png", acc::read_file(kImages / "color.png"));
  folder.write("a/gray.png", acc::read_file(kImages / "gray.png"));
  folder.write("b/alpha.png", acc::read_file(kImages / "alpha.png"));
}

}  // namespace

TEST_CASE("image_dataset: a batch is the images asked for and their labels", "[runtime]") {
  if (!acc::has_png()) return;
  const TemporaryFolder folder;
  write_images(folder);
  const acc::ImageDataset plain(acc::image_folder(folder.path()));
  CHECK(plain.size() == 3);
  const auto [images, labels] = plain.get_batch({2, 1});
  CHECK(images.scalar_type() == at::kByte);
  CHECK(images[0].equal(acc::read_image(kImages / "alpha.png")));
  CHECK(images[1].equal(acc::read_image(kImages / "gray.png")));
  CHECK(labels.equal(acc::test::numbers({1, 0}, {2}, at::kLong)));
  const acc::ImageDataset ready(acc::image_folder(folder.path()),
                                {.transforms = {acc::random_resized_crop(8), acc::random_horizontal_flip()},
                                 .normalize = acc::Normalize()});
  CHECK(ready.get_batch({0, 1, 2})[0].sizes() == c10::IntArrayRef({3, 3, 8, 8}));
  CHECK(ready.get_batch({0})[0].scalar_type() == at::kFloat);
}

TEST_CASE("image_dataset: what is random follows from the pass and the sample, on any thread", "[runtime]") {
  if (!acc::has_png()) return;
  const TemporaryFolder folder;
  write_images(folder);
  const acc::ImageDataset dataset(acc::image_folder(folder.path()),
                                  {.transforms = {acc::random_resized_crop(16)}});
  const auto read = [&](std::uint64_t pass, c10::ArrayRef<std::size_t> indices) {
    const acc::PassSeed seed(pass);
    return dataset.get_batch(indices)[0];
  };
  const at::Tensor together = read(7, {0, 1, 2});
  at::Tensor alone;
  std::thread([&] { alone = read(7, {2}); }).join();
  CHECK(alone[0].equal(together[2]));
  CHECK_FALSE(read(8, {2}).equal(alone));
}

TEST_CASE("image_dataset: a broken image is refused by its name, or skipped and told", "[runtime]") {
  if (!acc::has_png()) return;
  const TemporaryFolder folder;
  write_images(folder);
  const auto broken = folder.write("a/gray.png", acc::read_file(kImages / "gray.png").substr(0, 100));
  const acc::ImageFiles files = acc::image_folder(folder.path());
  try {
    acc::ImageDataset(files).get_batch({0, 1});
    FAIL("no error");
  } catch (const acc::Error& error) {
    CHECK(error.problems().front().where == broken.string());
  }
  const acc::ImageDataset skipping(files, {.broken = acc::BrokenImages::skip});
  const auto [images, labels] = skipping.get_batch({0, 1});
  CHECK(images[1].equal(acc::read_image(kImages / "alpha.png")));
  CHECK(labels.equal(acc::test::numbers({0, 1}, {2}, at::kLong)));
  REQUIRE(skipping.skipped().size() == 1);
  CHECK(skipping.skipped()[0].starts_with(broken.string() + ": is a broken PNG image"));
}

TEST_CASE("image_dataset: when no image can be read, skipping ends", "[runtime]") {
  const TemporaryFolder folder;
  folder.write("a/one.png", "");
  folder.write("a/two.png", "");
  const acc::ImageDataset dataset(acc::image_folder(folder.path()), {.broken = acc::BrokenImages::skip});
  CHECK_THROWS_AS(dataset.get_batch({0}), acc::Error);
  CHECK(dataset.skipped().size() == 2);
  CHECK_THROWS_AS(acc::ImageDataset(acc::ImageFiles()), acc::Error);
}
